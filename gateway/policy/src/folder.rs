//! Reads the files of a folder of policies.

use std::{fs, io, path::Path};

use weir_contracts::FileProblem;

/// Bytes of all policies together.
const BYTES_MAX: u64 = 1 << 20;
const FILES_MAX: usize = 256;
const ENDING: &str = "cedar";

/// A file with policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The name in problems.
    pub name: String,
    pub text: String,
}

/// Returns the policy files of a folder in the order of their names; none if there is no such folder. What cannot be read is
/// reported as a problem.
pub fn read_folder(folder: &Path) -> (Vec<PolicyFile>, Vec<FileProblem>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    let shown = folder.display().to_string();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (files, problems),
        Err(error) => {
            problems.push(FileProblem::new(
                &shown,
                "",
                format!("the folder of policies cannot be read: {error}"),
            ));
            return (files, problems);
        }
    };
    let is_policy = |path: &Path| path.extension().is_some_and(|ending| ending == ENDING);
    let mut paths = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => paths.push(entry.path()),
            Err(error) => problems.push(FileProblem::new(
                &shown,
                "",
                format!("the folder of policies cannot be read: {error}"),
            )),
        }
    }
    paths.retain(|path| is_policy(path));
    paths.sort();
    if paths.len() > FILES_MAX {
        let message = format!("there are more than {FILES_MAX} files of policies");
        problems
            .push(FileProblem::new(&shown, "", message).hint("put several policies into one file"));
        paths.truncate(FILES_MAX);
    }
    let mut left = BYTES_MAX;
    for path in paths {
        let name = path.display().to_string();
        match read_file(&path, &mut left) {
            Ok(text) => files.push(PolicyFile { name, text }),
            Err(why) => problems.push(FileProblem::new(&name, "", why)),
        }
    }
    (files, problems)
}

fn read_file(path: &Path, left: &mut u64) -> Result<String, String> {
    let length = fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    *left = left.checked_sub(length.len()).ok_or_else(|| {
        format!(
            "all policies together are larger than {} KiB",
            BYTES_MAX >> 10
        )
    })?;
    fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
}
