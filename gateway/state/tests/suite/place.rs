//! The place of a test's state: a folder, or a database of its own.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use weir_state::{GatewayState, ServerAddress};

use crate::server::Server;

pub(crate) struct Place {
    folder: tempfile::TempDir,
    url: Option<String>,
}

impl Place {
    pub(crate) fn file() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            url: None,
        }
    }

    pub(crate) fn database(server: &Server) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let name = format!("state{}", LAST.fetch_add(1, Relaxed));
        server.script(&format!("CREATE DATABASE {name}"));
        let url = server.url().replace("/postgres?", &format!("/{name}?"));
        Self {
            url: Some(url),
            ..Self::file()
        }
    }

    /// The folder of what is the machine's own.
    pub(crate) fn folder(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) async fn open(&self) -> GatewayState {
        let opened = match self.address() {
            Some(address) => GatewayState::connect(&address, &self.folder()).await,
            None => GatewayState::open(&self.folder()).await,
        };
        opened.expect("opened")
    }

    pub(crate) async fn open_to_read(&self) -> GatewayState {
        let opened = match self.address() {
            Some(address) => GatewayState::connect_to_read(&address, &self.folder()).await,
            None => GatewayState::open_to_read(&self.folder()).await,
        };
        opened.expect("opened to read")
    }

    /// Runs a statement without the state, and returns its number if it has one.
    pub(crate) async fn run(&self, statement: &'static str) -> Option<i64> {
        let row = match &self.url {
            Some(url) => {
                let pool = sqlx::PgPool::connect(url).await.expect("opened");
                let row = sqlx::query_as(statement).fetch_optional(&pool).await;
                pool.close().await;
                row
            }
            None => {
                let path = self.folder().join(weir_state::FILE);
                let url = format!("sqlite://{}", path.display());
                let pool = sqlx::SqlitePool::connect(&url).await.expect("opened");
                sqlx::query_as(statement).fetch_optional(&pool).await
            }
        };
        row.expect("it runs").map(|(number,)| number)
    }

    pub(crate) fn address(&self) -> Option<ServerAddress> {
        let url = self.url.as_deref()?;
        Some(ServerAddress::parse(url).expect("an address"))
    }
}
