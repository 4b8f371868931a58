//! The commands for authors of plugins: a folder to begin with, a build, the definitions, checks and tests, and the
//! installation of the result. All of it is inside the program; this repository is not needed.

mod build;
mod cases;
mod check;
mod folder;
mod install;
mod run;
mod schema;
mod start_new;
mod templates;

use weir_files::embedded::EmbeddedFile;

pub(super) use self::{
    build::BuildArgs,
    cases::TestArgs,
    check::CheckArgs,
    install::{InstallArgs, PluginVerifyArgs},
    schema::SchemaArgs,
    start_new::NewArgs,
};

/// The sources that come with the program, one after the other in one file.
#[derive(Clone, Copy)]
pub struct SourceArchive {
    /// The path of each in its repository, and its length.
    pub files: &'static [(&'static str, usize)],
    pub content: EmbeddedFile,
}

/// A source: the path in its repository, and the file.
pub(crate) type SourceFile = (&'static str, Vec<u8>);

impl SourceArchive {
    /// Returns the sources.
    pub(crate) fn unpack(&self) -> Vec<SourceFile> {
        let content = self.content.read();
        let mut rest = content.as_slice();
        let mut cut = |length| {
            let (file, after) = rest.split_at(length);
            rest = after;
            file.to_vec()
        };
        self.files
            .iter()
            .map(|(path, length)| (*path, cut(*length)))
            .collect()
    }
}
