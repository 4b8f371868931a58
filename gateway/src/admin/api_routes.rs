//! The routes of the API, each at the path that its description names. A test makes the OpenAPI document from the descriptions
//! and keeps it in a file: the code for this would add megabytes to the program.

use std::sync::Arc;

use axum::{Router, extract::DefaultBodyLimit, handler::Handler, routing::MethodRouter};
use utoipa_axum::PathItemExt as _;

use super::AdminContext;

#[cfg(test)]
mod document;
mod query;

pub(super) use self::query::check_query;

/// All routes.
#[derive(Default)]
pub(super) struct ApiRoutes {
    pub(super) router: Router<Arc<AdminContext>>,
    #[cfg(test)]
    described: Vec<utoipa_axum::router::UtoipaMethodRouter<Arc<AdminContext>>>,
}

impl ApiRoutes {
    pub(super) fn routes(mut self, route: ApiRoute) -> Self {
        let handlers = check_query(&route.path, route.handlers);
        self.router = self.router.route(&route.path, handlers);
        #[cfg(test)]
        self.described.push(route.described);
        self
    }
}

/// The handlers of one path.
pub(super) struct ApiRoute {
    pub(super) path: String,
    pub(super) handlers: MethodRouter<Arc<AdminContext>>,
    #[cfg(test)]
    pub(super) described: utoipa_axum::router::UtoipaMethodRouter<Arc<AdminContext>>,
}

impl ApiRoute {
    /// Adds a handler, whose description `D` names its methods.
    pub(super) fn on<D: utoipa::Path, T: 'static>(
        mut self,
        _: D,
        handler: impl Handler<T, Arc<AdminContext>>,
    ) -> Self {
        for method in D::methods() {
            let methods = method.to_method_filter();
            self.handlers = self.handlers.on(methods, handler.clone());
        }
        self
    }

    /// Sets the bound on the bodies of the route, in place of the default.
    pub(super) fn body_max(mut self, bytes: usize) -> Self {
        self.handlers = self.handlers.layer(DefaultBodyLimit::max(bytes));
        self
    }
}

/// Makes a route from handlers whose descriptions name the same path.
macro_rules! routes {
    ($module:ident :: $handler:ident $(, $next_module:ident :: $next:ident)* $(,)?) => {
        utoipa_axum::paste! {
            $crate::admin::api_routes::ApiRoute {
                path: <$module::[<__path_ $handler>] as utoipa::Path>::path(),
                handlers: axum::routing::MethodRouter::new(),
                #[cfg(test)]
                described: utoipa_axum::routes!(
                    $module::$handler $(, $next_module::$next)*
                ),
            }
            .on($module::[<__path_ $handler>], $module::$handler)
            $( .on($next_module::[<__path_ $next>], $next_module::$next) )*
        }
    };
}
pub(super) use routes;
