//! Recognises the server that accepts writes, and whether it is another one than before.
//!
//! A standby that becomes the primary begins another timeline, and may lack the last changes of the one before. Rights that had ended end
//! there again before any connection is used.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use sqlx::PgConnection;

use super::{endings::EndedRights, failure::code};

const STANDBY: &str = "it is a standby: promote it, or name the primary too in `[state] url`";
const READ: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN '' \
                    ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";
/// The codes of a server that does not let it be read: the role may not, there is no such function, or it is not supported.
const NOT_OFFERED: [&str; 3] = ["42501", "42883", "0A000"];

#[derive(Debug, Default)]
pub(crate) struct ServerTimeline {
    known: Mutex<Option<String>>,
    moves: AtomicU64,
    endings: EndedRights,
    /// Locked while a connection is checked: the others wait until rights have ended again.
    checking: tokio::sync::Mutex<()>,
}

impl ServerTimeline {
    /// Returns one that has seen a timeline before.
    pub(crate) fn known(timeline: Option<String>) -> Self {
        Self {
            known: Mutex::new(timeline),
            ..Self::default()
        }
    }

    /// Returns the timeline that was seen last.
    pub(crate) fn last(&self) -> Option<String> {
        self.known.lock().clone()
    }

    /// Returns the rights that this process has seen end.
    pub(crate) fn endings(&self) -> &EndedRights {
        &self.endings
    }

    /// Checks a new connection: one to a standby is refused. Another timeline than before is noted, once rights that had ended have
    /// ended there too.
    pub(super) async fn check(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let Some(now) = Self::read(connection).await? else {
            return Ok(());
        };
        let _checking = self.checking.lock().await;
        if self.last().is_some_and(|before| before != now) {
            self.endings.end_again(connection).await?;
            self.note_move();
        }
        *self.known.lock() = Some(now);
        Ok(())
    }

    /// Returns the timeline of a primary; `None` if a managed server does not report it.
    pub(super) async fn read(connection: &mut PgConnection) -> Result<Option<String>, sqlx::Error> {
        let read = sqlx::query_scalar::<_, String>(READ);
        match read.fetch_one(connection).await {
            Ok(timeline) if timeline.is_empty() => {
                Err(sqlx::Error::Io(std::io::Error::other(STANDBY)))
            }
            Ok(timeline) => Ok(Some(timeline)),
            Err(error) => match code(&error).as_deref() {
                Some(code) if NOT_OFFERED.contains(&code) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Notes that the database may lack changes that this process has seen.
    pub(crate) fn note_move(&self) {
        self.moves.fetch_add(1, Relaxed);
    }

    pub(crate) fn moves(&self) -> u64 {
        self.moves.load(Relaxed)
    }
}
