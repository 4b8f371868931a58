//! The front door of a listener: decides which requests are admitted. Host and Origin come first, then the key, the rate and
//! the bytes of the body; refusals are recorded in the trail, and a page of an allowed origin may read the answer (CORS).
//!
//! Each listener has one door. The surface behind it defines how refusals are answered ([`DoorSurface`]) and receives its caller
//! as an [`AdmittedCaller`], which only the door makes.

mod access;
mod answer;
mod body;
mod resource;

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{ALLOW, AUTHORIZATION, CONNECTION},
        request::Parts,
    },
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::body::Body as _;
use weir_audit::RefusedWhat;
use weir_text::shorten;

pub(crate) use self::{
    access::is_by_address,
    body::{COMPRESSED, is_compressed},
};
pub(super) use self::{
    access::is_own,
    body::{RefusedBody, read_of_unknown_caller},
    resource::{METADATA, ScopeNeeded, below_prefix},
};
use self::{answer::CountedBody, resource::ChallengeScheme};
use super::http::connections::{self, ClientConnection};
use crate::{
    config::{GatewayConfig, access::AccessRules},
    identity::{
        AuthenticationError, CallerIdentity, ClaimedHolder, PresentedToken, RefusedCaller,
        RefusedCredential, RequestCredential, RequestProof, TokenResource,
    },
    limits::{ByteBudget, BytesHolder, RateCharge, UNCOUNTED_MAX_BYTES, holder},
    methods::{CatalogueEndpoint, RequestScope},
    serving::ServingGateway,
    wire::RpcError,
};

/// The bound on a recorded path.
const PLACE_MAX_CHARS: usize = 200;

/// The door of one listener.
pub struct FrontDoor {
    gateway: Arc<ServingGateway>,
    access: access::CurrentAccess,
    bytes: Arc<ByteBudget>,
}

/// A surface behind a door, and the form of its refusals.
pub(super) trait DoorSurface: Sync {
    /// Returns the place as the trail names it.
    fn place(&self) -> String;

    /// Returns the endpoint for which a token must be issued.
    fn endpoint(&self) -> CatalogueEndpoint;

    /// Returns the answer if nothing is served here.
    fn closed(&self, _gateway: &ServingGateway) -> Option<Response> {
        None
    }

    /// Returns the methods that are answered, as `Allow` has them. `None`: the surface decides on its own.
    fn methods(&self) -> Option<&'static str>;

    /// Returns `true` if a browser asks the person for the key, as the password of HTTP's Basic scheme.
    fn asks_people(&self) -> bool {
        false
    }

    /// Returns `true` if the refusal of an unknown caller names the request by the `id` in its body.
    fn names_requests(&self) -> bool {
        false
    }

    fn refusal(&self, error: &RpcError) -> Response;

    /// Returns the answer to any other method.
    fn not_allowed(&self, allowed: &'static str) -> Response {
        not_allowed(allowed, |error| self.refusal(error))
    }

    /// Returns the answer to an unknown caller. `body` is that of a POST, where refusals name requests.
    fn unauthorized(&self, refused: AuthenticationError, body: Option<&[u8]>) -> Response;

    /// Adds headers to every answer behind the door. `is_exposed`: a page of another origin may read it.
    fn complete(&self, _headers: &mut HeaderMap, _is_exposed: bool) {}
}

/// A request whose Host and Origin are allowed.
pub(crate) struct CheckedVisit<'d, 'h> {
    door: &'d FrontDoor,
    head: &'h Parts,
    origin: Option<&'h HeaderValue>,
}

/// A caller that the door admitted. A handler requires it to answer.
pub(super) struct AdmittedCaller<'d> {
    door: &'d FrontDoor,
    surface: &'d dyn DoorSurface,
    caller: CallerIdentity,
    /// The cost of the request. For a POST, whose body is still to be read, it is already charged.
    charge: RateCharge,
}

impl FrontDoor {
    /// Creates the door of a listener. `local` is the address that it listens on; `rules` picks its hosts and origins from the
    /// configuration in effect.
    pub fn new(
        gateway: &Arc<ServingGateway>,
        local: SocketAddr,
        rules: fn(&GatewayConfig) -> AccessRules<'_>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            access: access::CurrentAccess::new(gateway, local, rules)?,
            bytes: Arc::default(),
            gateway: gateway.clone(),
        })
    }

    /// Answers a request to `surface`. `enter` answers a known caller.
    pub(super) async fn answer(
        &self,
        surface: &impl DoorSurface,
        head: &Parts,
        body: Body,
        enter: impl AsyncFnOnce(AdmittedCaller<'_>, Body) -> Response,
    ) -> Response {
        let visit = match self.visit(head, || surface.place()) {
            Ok(visit) => visit,
            Err(error) => return surface.refusal(&error),
        };
        if self.gateway.readiness().is_stale() {
            return surface.refusal(&RpcError::no_room(503, super::STALE));
        }
        if let Some(closed) = surface.closed(&self.gateway) {
            return closed;
        }
        let is_refused = |allowed: &&str| !names(allowed, &head.method);
        let not_allowed = surface.methods().filter(is_refused);
        let mut response = match (&head.method, not_allowed) {
            (&Method::OPTIONS, _) => visit.preflight(),
            // Clients that sign in expect a 401 for any request.
            (_, Some(allowed)) if self.gateway.identities().tokens().is_none() => {
                surface.not_allowed(allowed)
            }
            (_, not_allowed) => match visit.admit(surface).await {
                Ok(_) if let Some(allowed) = not_allowed => surface.not_allowed(allowed),
                Ok(admitted) => {
                    let holder = holder(&admitted.caller);
                    let response = enter(admitted, body).await;
                    let mut response = self.count(response, holder);
                    if response.status() == StatusCode::FORBIDDEN
                        && response.extensions().get::<ScopeNeeded>().is_some()
                    {
                        let resource = self.resource(head, &surface.endpoint());
                        let is_bound = is_bound(&head.headers);
                        resource::ask_for_scope(&mut response, &resource, is_bound);
                    }
                    response
                }
                Err(refused) => self.refuse(surface, refused, head, body).await,
            },
        };
        visit.expose(response.headers_mut());
        surface.complete(response.headers_mut(), visit.origin.is_some());
        response
    }

    /// Answers an unknown caller, and asks for a credential.
    async fn refuse(
        &self,
        surface: &impl DoorSurface,
        refused: AuthenticationError,
        head: &Parts,
        body: Body,
    ) -> Response {
        let body = match head.method {
            Method::POST if surface.names_requests() => {
                body::read_of_unknown_caller(&head.headers, body).await
            }
            _ => None,
        };
        let mut response = surface.unauthorized(refused, body.as_deref());
        // A caller that cannot be checked now does not need another token.
        if let Some(tokens) = &*self.gateway.identities().tokens()
            && !refused.is_temporary()
        {
            let resource = self.resource(head, &surface.endpoint());
            let scheme = ChallengeScheme::new(refused, &head.headers, tokens);
            resource::challenge(&mut response, &resource, refused, scheme);
        }
        response
    }

    /// Answers with the metadata of an endpoint as a resource of OAuth; `None` if no issuer is configured. It is public, for
    /// every origin: only the Host is checked.
    pub(super) fn metadata(
        &self,
        head: &Parts,
        endpoint: &CatalogueEndpoint,
    ) -> Option<Result<Response, RpcError>> {
        let tokens = self.gateway.identities().tokens();
        let tokens = tokens.as_ref()?;
        if let Err(refused) = self.access.check_hosts(&head.uri, &head.headers) {
            self.record(RefusedWhat::Request, head.uri.path(), None, refused.what);
            return Some(Err(refused.error));
        }
        let mut response = match head.method {
            Method::OPTIONS => access::preflight(&head.headers, true),
            _ => resource::metadata(&self.resource(head, endpoint), tokens),
        };
        resource::expose_to_all(response.headers_mut());
        Some(Ok(response))
    }

    /// Returns an endpoint as the client of this request names it.
    fn resource(&self, head: &Parts, endpoint: &CatalogueEndpoint) -> TokenResource {
        let config = self.gateway.config();
        resource::resource(&config, self.access.local(), &head.headers, endpoint)
    }

    /// Checks Host and Origin. `place` is the target of the request, for the trail.
    pub(crate) fn visit<'d, 'h>(
        &'d self,
        head: &'h Parts,
        place: impl FnOnce() -> String,
    ) -> Result<CheckedVisit<'d, 'h>, RpcError> {
        match self.access.check(&head.uri, &head.headers) {
            Ok(origin) => Ok(CheckedVisit {
                door: self,
                head,
                origin,
            }),
            Err(refused) => {
                self.record(RefusedWhat::Request, &place(), None, refused.what);
                Err(refused.error)
            }
        }
    }

    /// Records an unknown caller at an endpoint of admins: for the trail by the kind of credential, for operators by the
    /// reason.
    pub(crate) fn record_unknown_admin(
        &self,
        place: &str,
        credential: RequestCredential<'_>,
        kind: &str,
        reason: &str,
    ) {
        self.record(RefusedWhat::Identity, place, credential.id(), kind);
        self.keep_reason(place, credential, reason, false, None);
    }

    /// Records that the caller is unknown, and keeps the reason for operators.
    fn record_unknown(
        &self,
        place: &str,
        credential: RequestCredential<'_>,
        refused: AuthenticationError,
        holder: Option<&ClaimedHolder>,
    ) {
        let reason = refused.to_string();
        self.record(RefusedWhat::Identity, place, credential.id(), &reason);
        let is_genuine = refused.is_of_genuine();
        self.keep_reason(place, credential, &refused.reason(), is_genuine, holder);
    }

    fn keep_reason(
        &self,
        endpoint: &str,
        credential: RequestCredential<'_>,
        reason: &str,
        is_genuine: bool,
        holder: Option<&ClaimedHolder>,
    ) {
        let failures = self.gateway.identities().failures();
        failures.note(RefusedCredential {
            endpoint,
            reason,
            is_genuine,
            key_id: credential.id(),
            holder,
        });
    }

    /// Charges a request to the rate of its agent.
    pub(super) async fn within_rate(
        &self,
        caller: &CallerIdentity,
        place: &str,
    ) -> Result<(), RpcError> {
        self.gateway
            .buckets()
            .request(caller, Instant::now())
            .await
            .map_err(|wait| {
                self.gateway.audit().refused_rate(place, &caller.agent);
                RpcError::rate_limited(wait)
            })
    }

    /// Charges a further request of a message with several.
    pub(super) async fn charge_further(&self, caller: &CallerIdentity) -> RateCharge {
        let buckets = self.gateway.buckets();
        buckets.charge_further(caller, Instant::now()).await
    }

    /// Gives back the charge of a message that costs nothing.
    pub(super) fn give_back(&self, charge: RateCharge, caller: &CallerIdentity) {
        self.gateway.buckets().give_back(charge, caller);
    }

    /// Counts a large answer until its client has taken it.
    fn count(&self, response: Response, holder: BytesHolder) -> Response {
        let size = response.body().size_hint().exact();
        if size.is_some_and(|size| size <= UNCOUNTED_MAX_BYTES as u64) {
            return response;
        }
        response.map(|body| {
            Body::new(CountedBody {
                body,
                rest: Bytes::new(),
                budget: self.budget().clone(),
                holder,
                connection: ClientConnection::current(),
                metrics: self.gateway.metrics().clone(),
            })
        })
    }

    /// Returns the byte budget, with the currently configured bounds.
    fn budget(&self) -> &Arc<ByteBudget> {
        let config = self.gateway.config();
        let (limits, body) = (&config.limits, config.http.body_max_bytes);
        // One body always fits.
        let (all, agent) = (
            limits.held_max_bytes.max(body),
            limits.agent_held_max_bytes.max(body),
        );
        self.bytes.set_most(all, agent);
        &self.bytes
    }

    fn record(&self, what: RefusedWhat, place: &str, key_id: Option<&str>, reason: &str) {
        let address = connections::peer().map(|peer| peer.ip());
        let place = shorten(place, PLACE_MAX_CHARS);
        self.gateway
            .audit()
            .refused(what, &place, key_id, address, reason);
    }
}

impl CheckedVisit<'_, '_> {
    /// Answers the preflight request of a browser.
    pub(super) fn preflight(&self) -> Response {
        access::preflight(&self.head.headers, self.origin.is_some())
    }

    /// Lets a page of an allowed origin read the answer.
    pub(super) fn expose(&self, response: &mut HeaderMap) {
        if let Some(origin) = self.origin {
            access::expose(response, origin);
        }
    }

    /// Identifies the caller by a key or by a token: a credential that begins like a key is never read as a token.
    async fn admit<'a>(
        &'a self,
        surface: &'a impl DoorSurface,
    ) -> Result<AdmittedCaller<'a>, AuthenticationError> {
        let password = match surface.asks_people() {
            true => password(&self.head.headers),
            false => None,
        };
        let credential = match &password {
            Some(password) => RequestCredential::Key(password),
            None => credential(&self.head.headers),
        };
        let resolved = match self.door.gateway.identities().resolve(credential) {
            Err(AuthenticationError::Malformed)
                if let (None, Some(token)) = (&password, credential.token()) =>
            {
                let token = self.present(credential, token);
                match self.admit_known(token, surface) {
                    Some(known) => known,
                    // Boxed, so that the future of other requests remains small.
                    None => Box::pin(self.admit_token(token, surface)).await,
                }
            }
            resolved => resolved.map_err(RefusedCaller::from),
        };
        match resolved {
            Ok(caller) => {
                connections::set_known();
                let charge = match self.head.method {
                    Method::POST => {
                        let buckets = self.door.gateway.buckets();
                        buckets.charge(&caller, Instant::now()).await
                    }
                    _ => RateCharge::Due,
                };
                Ok(AdmittedCaller {
                    door: self.door,
                    surface,
                    caller,
                    charge,
                })
            }
            Err(RefusedCaller { refused, holder }) => {
                let (door, holder) = (self.door, holder.as_deref());
                door.record_unknown(&surface.place(), credential, refused, holder);
                Err(refused)
            }
        }
    }
}

impl CheckedVisit<'_, '_> {
    /// Returns the token, with its proof if it is bound to a key.
    fn present<'t>(
        &'t self,
        credential: RequestCredential<'_>,
        token: &'t str,
    ) -> PresentedToken<'t> {
        let proof = || RequestProof {
            text: proof(&self.head.headers),
            method: self.head.method.as_str(),
            path: self.head.uri.path(),
        };
        PresentedToken {
            text: token,
            proof: matches!(credential, RequestCredential::Bound(_)).then(proof),
        }
    }

    /// Identifies the caller by an already validated token.
    fn admit_known(
        &self,
        token: PresentedToken<'_>,
        surface: &impl DoorSurface,
    ) -> Option<Result<CallerIdentity, RefusedCaller>> {
        let tokens = self.door.gateway.identities().tokens();
        let resource = || self.door.resource(self.head, &surface.endpoint());
        tokens.as_ref()?.resolve_cached(token, resource)
    }

    /// Identifies the caller by a token of a configured issuer.
    async fn admit_token(
        &self,
        token: PresentedToken<'_>,
        surface: &impl DoorSurface,
    ) -> Result<CallerIdentity, RefusedCaller> {
        let tokens = self.door.gateway.identities().tokens().clone();
        let Some(tokens) = tokens else {
            return Err(AuthenticationError::Malformed.into());
        };
        let resource = self.door.resource(self.head, &surface.endpoint());
        tokens.resolve(token, &resource).await
    }
}

impl AdmittedCaller<'_> {
    pub(super) fn caller(&self) -> &CallerIdentity {
        &self.caller
    }

    /// Returns the caller, with the cost of its request.
    pub(super) fn into_caller(self) -> (CallerIdentity, RateCharge) {
        (self.caller, self.charge)
    }

    /// Returns the scope of a request to an endpoint of MCP.
    pub(super) fn into_scope(self, endpoint: CatalogueEndpoint) -> RequestScope {
        RequestScope {
            gateway: self.door.gateway.clone(),
            endpoint: endpoint.for_caller(&self.caller),
            caller: self.caller,
            transport: "http",
            client: None,
            charge: self.charge,
        }
    }

    /// Charges a page or a document to the rate of its agent: it counts as a request.
    pub(super) async fn within_rate(&self, place: &str) -> Result<(), RpcError> {
        self.door.within_rate(&self.caller, place).await
    }

    /// Records that the caller may not see anything at this place.
    pub(super) fn record_hidden(&self, place: &str) {
        self.door
            .gateway
            .audit()
            .refused_access(place, &self.caller.agent);
    }

    /// Reads the body of a POST. If the caller is over its rate, the body is read only if it is small and arrives soon, so that
    /// the request can be refused by its id.
    pub(super) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Bytes, RefusedBody> {
        let allowance = body::BodyAllowance {
            charge: self.charge,
            bytes_max: self.door.gateway.config().http.body_max_bytes,
            count: &|| self.door.budget().begin(holder(&self.caller)),
        };
        let read = body::read(headers, body, allowance).await;
        if let (Err(_), RateCharge::Over(_)) = (&read, self.charge) {
            let audit = self.door.gateway.audit();
            audit.refused_rate(&self.surface.place(), &self.caller.agent);
        }
        read
    }
}

/// Returns the answer to a method that is not allowed.
pub(super) fn not_allowed(
    allowed: &'static str,
    refuse: impl FnOnce(&RpcError) -> Response,
) -> Response {
    let message = format!("the methods allowed here are {allowed}");
    let mut response = refuse(&RpcError::refused(405, message));
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Notes in a refusal that the rest of the body is not awaited.
pub(crate) fn closing(mut refusal: Response) -> Response {
    refusal
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    refusal
}

/// Closes the connection after a refusal if the rest of the body is not awaited.
pub(super) fn close_if_unread(error: &RpcError, refusal: Response) -> Response {
    match error.status {
        401 | 403 | 408 | 413 | 415 => closing(refusal),
        _ => refusal,
    }
}

/// Returns the credential of the `Authorization` header.
pub(crate) fn credential(headers: &HeaderMap) -> RequestCredential<'_> {
    let values = headers.get_all(AUTHORIZATION).iter();
    RequestCredential::of_header(values.map(HeaderValue::as_bytes))
}

/// Returns `true` if the request has a token that is bound to a key.
fn is_bound(headers: &HeaderMap) -> bool {
    matches!(credential(headers), RequestCredential::Bound(_))
}

/// Returns the proof of a request, if there is exactly one.
fn proof(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all("dpop").iter();
    match (values.next(), values.next()) {
        (Some(proof), None) => proof.to_str().ok(),
        _ => None,
    }
}

/// Returns the password of `Authorization: Basic …`; the key alone identifies its holder.
fn password(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (text, None) = (values.next()?.to_str().ok()?, values.next()) else {
        return None;
    };
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    Some(decoded.split_once(':')?.1.to_owned())
}

fn names(allowed: &str, method: &Method) -> bool {
    allowed.split(", ").any(|name| name == method.as_str())
}
