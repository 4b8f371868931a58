//! The host's own tests: real components, loaded from a real folder.

mod bounds;
mod imports;
mod isolation;
mod loading;
mod workbench;
