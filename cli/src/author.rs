//! Holds what the author of a plugin works with: a folder to begin with, a build, the definitions, checks and tests,
//! and the way of the result to where it runs. All of it is inside the program; this repository is not needed.

mod build;
mod cases;
mod check;
mod folder;
mod install;
mod run;
mod schema;
mod start_new;
mod templates;

pub(super) use self::{
    build::BuildArgs,
    cases::TestArgs,
    check::CheckArgs,
    install::{InstallArgs, PluginVerifyArgs},
    schema::SchemaArgs,
    start_new::NewArgs,
};

/// The sources that come with the program: the path in its repository, and the file.
pub type Sources = &'static [(&'static str, &'static [u8])];
