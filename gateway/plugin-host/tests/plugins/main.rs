//! The host's own tests: real components, loaded from a real folder.

mod bounds;
mod built_in;
mod imports;
mod isolation;
mod languages;
mod libraries;
mod loading;
mod native;
mod tools;
mod workbench;
