//! For systems without support for reports by the kernel.

use std::{convert::Infallible, sync::Arc};

use crate::Place;

pub(crate) struct Kernel(Infallible);
pub(crate) struct Watch(Infallible);

impl Kernel {
    pub(crate) fn start() -> Result<Arc<Self>, String> {
        Err("this system is not supported".to_owned())
    }

    pub(crate) fn watch(self: &Arc<Self>, _: Vec<Place>) -> Watch {
        match self.0 {}
    }
}

impl Watch {
    pub(crate) fn renew(&self) -> Result<(), String> {
        match self.0 {}
    }

    pub(crate) async fn changed(&self) {
        match self.0 {}
    }

    pub(crate) fn take_change(&self) -> bool {
        match self.0 {}
    }
}
