//! Holds what an operator writes under `[connections.NAME]` of `weir.toml`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::mask;

/// `url`, `base_url`, `ca` and the values of `headers` may hold secrets by reference: `env:NAME` or `file:path` as the whole
/// value, or `${env:NAME}` and `${file:path}` inside it (`"Bearer ${env:TOKEN}"`).
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ConnectionConfig {
    Sqlite {
        path: PathBuf,
        #[serde(default)]
        write: bool,
    },
    Postgresql {
        url: String,
        #[serde(default)]
        write: bool,
        #[serde(default)]
        pool_max: Option<u32>,
    },
    /// MySQL or MariaDB.
    #[serde(alias = "mariadb")]
    Mysql {
        url: String,
        #[serde(default)]
        write: bool,
        #[serde(default)]
        pool_max: Option<u32>,
    },
    Http {
        base_url: String,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// PEM: the authorities whose certificates are accepted; the system's without it.
        #[serde(default)]
        ca: Option<String>,
        #[serde(default)]
        write: bool,
        #[serde(default)]
        timeout_ms: Option<u64>,
        #[serde(default)]
        response_max_bytes: Option<u64>,
    },
    Files {
        path: PathBuf,
        #[serde(default)]
        write: bool,
        /// Whether people may upload files over the admin API. Plugins need only `write` to write.
        #[serde(default)]
        uploads: bool,
    },
}

impl ConnectionConfig {
    /// Returns `true` if the operator lets the connection write.
    pub fn is_writable(&self) -> bool {
        let (Self::Sqlite { write, .. }
        | Self::Postgresql { write, .. }
        | Self::Mysql { write, .. }
        | Self::Http { write, .. }
        | Self::Files { write, .. }) = self;
        *write
    }

    /// Returns the files that its secrets are read from. A `ca` is not a secret.
    pub fn secret_files(&self, base: &Path) -> Vec<PathBuf> {
        let values: Vec<&String> = match self {
            Self::Sqlite { .. } | Self::Files { .. } => Vec::new(),
            Self::Postgresql { url, .. } | Self::Mysql { url, .. } => vec![url],
            Self::Http {
                base_url, headers, ..
            } => headers.values().chain([base_url]).collect(),
        };
        let files = values.iter().flat_map(|value| secret_files(value, base));
        files.collect()
    }

    /// Returns the configuration with every secret filled in and every path made whole. The error names the reference,
    /// never a value.
    pub(crate) fn resolved(&self, base: &Path) -> Result<Self, String> {
        let mut resolved = self.clone();
        match &mut resolved {
            Self::Sqlite { path, .. } | Self::Files { path, .. } => *path = base.join(&*path),
            Self::Postgresql { url, .. } | Self::Mysql { url, .. } => {
                *url = resolve_url(url, base)?;
            }
            Self::Http {
                base_url,
                headers,
                ca,
                ..
            } => {
                *base_url = resolve_url(base_url, base)?;
                for (name, value) in headers {
                    *value = resolve_named(name, value, base)?;
                }
                if let Some(ca) = ca {
                    *ca = filled(ca, base, referred)?;
                }
            }
        }
        Ok(resolved)
    }
}

/// Replaces the references to secrets, which are masked from then on in texts of others. The error names the reference,
/// never a value.
pub fn resolve(value: &str, base: &Path) -> Result<String, String> {
    filled(value, base, |reference, base| {
        let secret = referred(reference, base)?;
        mask::learn(&secret);
        Ok(secret)
    })
}

/// Replaces the references in the value of a header or a variable. Its name decides whether a literal value is a secret too.
pub fn resolve_named(name: &str, value: &str, base: &Path) -> Result<String, String> {
    let resolved = filled(value, base, |reference, base| {
        let found = referred(reference, base)?;
        mask::learn_referred(name, reference, &found);
        Ok(found)
    })?;
    if resolved == value {
        mask::learn_named(name, value);
    }
    Ok(resolved)
}

/// Replaces the references in a URL, in which the password and parameters that are named like a secret are secrets.
pub fn resolve_url(url: &str, base: &Path) -> Result<String, String> {
    let resolved = filled(url, base, |reference, base| {
        let found = referred(reference, base)?;
        if !found.contains("://") {
            mask::learn_named(reference, &found);
        }
        Ok(found)
    })?;
    mask::learn_url(&resolved);
    Ok(resolved)
}

/// Returns the files that [`resolve`] reads.
pub fn secret_files(value: &str, base: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let noted = filled(value, base, |reference, base| {
        files.extend(reference.strip_prefix("file:").map(|path| base.join(path)));
        Ok(String::new())
    });
    noted.map_or_else(|_| Vec::new(), |_| files)
}

/// Replaces each reference by what `find` returns for it.
fn filled(
    value: &str,
    base: &Path,
    mut find: impl FnMut(&str, &Path) -> Result<String, String>,
) -> Result<String, String> {
    if value.starts_with("env:") || value.starts_with("file:") {
        return find(value, base);
    }
    let mut resolved = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest
        .find("${env:")
        .into_iter()
        .chain(rest.find("${file:"))
        .min()
    {
        let Some(length) = rest[start..].find('}') else {
            return Err("`${` is never closed by `}`".to_owned());
        };
        resolved.push_str(&rest[..start]);
        resolved.push_str(&find(&rest[start + 2..start + length], base)?);
        rest = &rest[start + length + 1..];
    }
    resolved.push_str(rest);
    Ok(resolved)
}

fn referred(reference: &str, base: &Path) -> Result<String, String> {
    let value = if let Some(name) = reference.strip_prefix("env:") {
        std::env::var(name)
            .map_err(|_| format!("the environment variable {name} is not set, or not Unicode"))?
    } else {
        let path = base.join(reference.strip_prefix("file:").unwrap_or(reference));
        std::fs::read_to_string(&path).map_err(|error| {
            format!(
                "the secret file {} cannot be read: {}",
                path.display(),
                error.kind()
            )
        })?
    };
    // Editors end a file with a line, and files of variables often leave one after a value too.
    let value = value.trim_end_matches(['\r', '\n']);
    if value.is_empty() {
        return Err(format!("the secret `{reference}` is empty"));
    }
    Ok(value.to_owned())
}

/// Leaves out anything that may contain a credential, written there or not.
impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path, write } => out
                .debug_struct("Sqlite")
                .field("path", path)
                .field("write", write)
                .finish(),
            Self::Postgresql {
                write, pool_max, ..
            } => out
                .debug_struct("Postgresql")
                .field("write", write)
                .field("pool_max", pool_max)
                .finish_non_exhaustive(),
            Self::Mysql {
                write, pool_max, ..
            } => out
                .debug_struct("Mysql")
                .field("write", write)
                .field("pool_max", pool_max)
                .finish_non_exhaustive(),
            Self::Http { headers, write, .. } => out
                .debug_struct("Http")
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .field("write", write)
                .finish_non_exhaustive(),
            Self::Files {
                path,
                write,
                uploads,
            } => out
                .debug_struct("Files")
                .field("path", path)
                .field("write", write)
                .field("uploads", uploads)
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_resolved_and_never_printed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("token"), "hunter2\n").expect("written");
        let cases = [
            ("plain", Ok("plain")),
            ("file:token", Ok("hunter2")),
            ("Bearer ${file:token}", Ok("Bearer hunter2")),
            ("a${file:token}b${file:token}c", Ok("ahunter2bhunter2c")),
            ("${file:token", Err("never closed")),
            (
                "env:WEIR_NO_SUCH_VARIABLE",
                Err("WEIR_NO_SUCH_VARIABLE is not set"),
            ),
            ("file:absent", Err("cannot be read")),
        ];
        for (value, expected) in cases {
            match (resolve(value, folder.path()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => {
                    assert!(found.contains(expected), "{value}: {found}")
                }
                (found, _) => panic!("{value}: {found:?}"),
            }
        }
        let config = ConnectionConfig::Postgresql {
            url: "postgresql://u:hunter2@h/d".into(),
            write: false,
            pool_max: None,
        };
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
