//! The file by which the command line on the same machine finds the admin API of a running gateway.

use std::{
    convert::Infallible,
    fs::File,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// The file of the state folder that holds the address.
const FILE: &str = "admin.url";
/// The address as it is written to the file. The file is locked while its gateway runs, so that an operator's key is never sent
/// to another process that has taken the port.
pub struct AddressFile {
    file: PathBuf,
    address: String,
    held: File,
}

/// Writes the address to the file.
pub fn announce(folder: &Path, address: SocketAddr) -> io::Result<AddressFile> {
    let (file, address) = (folder.join(FILE), format!("http://{address}"));
    let held = weir_files::replace_held(&file, address.as_bytes())?;
    Ok(AddressFile {
        file,
        address,
        held,
    })
}

impl AddressFile {
    /// Keeps the address in the file. Of several gateways with one state folder, the last one is found; when it ends, another one
    /// is found within a second.
    pub async fn keep(mut self) -> Infallible {
        loop {
            weir_watch::next_beat().await;
            if matches!(weir_files::read_held(&self.file), Ok(Some(_))) {
                continue;
            }
            match weir_files::replace_held(&self.file, self.address.as_bytes()) {
                Ok(held) => self.held = held,
                Err(error) => {
                    tracing::warn!(%error, "the address of the admin API cannot be written down")
                }
            }
        }
    }
}

/// Returns the address of a running gateway with this state folder.
pub fn found(folder: &Path) -> anyhow::Result<String> {
    let file = folder.join(FILE);
    match weir_files::read_held(&file) {
        Ok(Some(address)) => Ok(address.trim().to_owned()),
        Ok(None) => anyhow::bail!("{} is of a gateway that has ended", file.display()),
        Err(error) => {
            Err(anyhow::Error::new(error).context(format!("{} cannot be read", file.display())))
        }
    }
}
