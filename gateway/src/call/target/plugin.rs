//! A function of a plugin.

mod bind;
mod item;
mod run;
mod shape;

pub(in crate::call) use self::item::ask_item;
pub(super) use self::{bind::bind, run::run, shape::shape};
