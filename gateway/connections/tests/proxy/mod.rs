//! A proxy between a client and its server, which sees or spoils what passes.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use parking_lot::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoil {
    Nothing,
    /// The server cannot read the BEGIN.
    Begin,
    /// The connection is closed instead of passing the next request on.
    Request,
    /// The COMMIT is passed on, and the connection closed before its answer.
    CommitAnswer,
    /// The COMMIT is passed on, and nothing comes back any more.
    Silence,
}

pub(crate) struct Proxy {
    folder: tempfile::TempDir,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug)]
struct Seen {
    spoil: Spoil,
    /// The bytes from the client, one entry for each read.
    requests: Vec<Vec<u8>>,
}

impl Proxy {
    /// Starts a proxy before the server whose socket is in that folder.
    pub(crate) fn before(server: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(socket(folder.path())).expect("a socket");
        let seen = Arc::new(Mutex::new(Seen {
            spoil: Spoil::Nothing,
            requests: Vec::new(),
        }));
        let (server, shared) = (socket(server), seen.clone());
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&server)) else {
                    return;
                };
                let seen = shared.clone();
                thread::spawn(move || pass(client, server, &seen));
            }
        });
        Self { folder, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "postgresql://weir@localhost/postgres?host={}",
            self.folder.path().display()
        )
    }

    pub(crate) fn spoil(&self, spoil: Spoil) {
        self.seen.lock().spoil = spoil;
    }

    /// Returns what came since the last time.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.seen.lock().requests)
    }
}

fn pass(mut client: UnixStream, mut server: UnixStream, seen: &Mutex<Seen>) {
    let (mut from, mut to) = (
        server.try_clone().expect("a copy"),
        client.try_clone().expect("a copy"),
    );
    let silent = Arc::new(AtomicBool::new(false));
    let silenced = silent.clone();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if !silenced.load(Relaxed) && to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let mut request = buffer[..length].to_vec();
        let mut seen = seen.lock();
        seen.requests.push(request.clone());
        match seen.spoil {
            Spoil::Begin => replace(&mut request, b"BEGIN ISOLATION", b"BEGAN ISOLATION"),
            Spoil::Request => {
                seen.spoil = Spoil::Nothing;
                break;
            }
            spoil @ (Spoil::CommitAnswer | Spoil::Silence)
                if request.windows(7).any(|bytes| bytes == b"COMMIT\0") =>
            {
                seen.spoil = Spoil::Nothing;
                match spoil {
                    Spoil::Silence => silent.store(true, Relaxed),
                    _ => drop(client.shutdown(Shutdown::Both)),
                }
            }
            _ => {}
        }
        drop(seen);
        if server.write_all(&request).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Write);
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.5432")
}
