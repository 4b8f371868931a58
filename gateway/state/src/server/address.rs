//! The address of the database: a URL as libpq accepts it.

use std::{fmt, str::FromStr as _};

use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgSslMode},
};

/// Parameters that a URL may have in addition to the host, the user, the password and the database.
const PARAMETERS: [&str; 13] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "application_name",
    "options",
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    TARGET,
];
/// The parameter of libpq that selects one of several servers. Here it is always the primary, even if the parameter is left out.
const TARGET: &str = "target_session_attrs";
/// Servers that one URL names.
const HOSTS_MAX: usize = 8;
const MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];
/// The server's own bounds, in milliseconds: on a statement, on the wait for a lock, and on a transaction of a node that hangs.
const BOUNDS: [(&str, &str); 3] = [
    ("statement_timeout", "9000"),
    ("lock_timeout", "8000"),
    ("idle_in_transaction_session_timeout", "10000"),
];

/// The address of a state in PostgreSQL, and its credentials. It shows no password.
#[derive(Clone)]
pub struct ServerAddress(Vec<PgConnectOptions>);

impl ServerAddress {
    /// Reads a URL. The messages repeat no part of it, since that may be a part of the password.
    pub fn parse(url: &str) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("`url` must begin with postgresql://".to_owned());
        }
        let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
        let parameters: Vec<(&str, &str)> = parameters
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
            .collect();
        // An unknown parameter may be a promise that would not be kept.
        if !parameters.iter().all(|(name, _)| PARAMETERS.contains(name)) {
            let known = PARAMETERS.join(", ");
            return Err(format!(
                "`url` has a parameter that is not known; there are {known}"
            ));
        }
        let value = |wanted: &str| {
            let mut named = parameters.iter().filter(|(name, _)| *name == wanted);
            named.next_back().map(|(_, value)| *value)
        };
        if value("sslmode").is_some_and(|mode| !MODES.contains(&mode)) {
            return Err("`url` has an sslmode that is not known".to_owned());
        }
        if value("sslcert").is_some() != value("sslkey").is_some() {
            return Err("`url` must have sslcert and sslkey, or neither".to_owned());
        }
        if value(TARGET).is_some_and(|target| !["primary", "read-write"].contains(&target)) {
            return Err(format!(
                "`url` may only have {TARGET}=read-write: a standby is not used"
            ));
        }
        let (named_ca, named_program) = (
            value("sslrootcert").is_some(),
            value("application_name").is_some(),
        );
        let urls = split_hosts(&without_target(url));
        if urls.len() > HOSTS_MAX {
            return Err(format!("`url` names more than {HOSTS_MAX} servers"));
        }
        let servers = urls.iter().map(|url| server(url, named_ca, named_program));
        Ok(Self(servers.collect::<Result<_, _>>()?))
    }

    /// The same for one that changes nothing.
    pub(crate) fn to_read(&self) -> Self {
        let read_only = [("default_transaction_read_only", "on")];
        let servers = self.0.iter().cloned();
        Self(servers.map(|server| server.options(read_only)).collect())
    }

    /// Returns the servers that may be the primary, for what else is kept in the same database too.
    pub fn servers(&self) -> &[PgConnectOptions] {
        &self.0
    }
}

/// Returns a URL for each server: as in libpq, `one:5432,other:5432` are two.
fn split_hosts(url: &str) -> Vec<String> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..]
        .find(['/', '?'])
        .map_or(url.len(), |at| start + at);
    let (before, after) = (&url[..start], &url[end..]);
    let authority = &url[start..end];
    let at = authority.rfind('@').map_or(0, |at| at + 1);
    let (login, hosts) = authority.split_at(at);
    let one = |host: &str| format!("{before}{login}{host}{after}");
    hosts.split(',').map(one).collect()
}

fn without_target(url: &str) -> String {
    let Some((address, parameters)) = url.split_once('?') else {
        return url.to_owned();
    };
    let others = parameters
        .split('&')
        .filter(|parameter| parameter.split('=').next() != Some(TARGET));
    let others: Vec<&str> = others.collect();
    format!("{address}?{}", others.join("&"))
}

fn server(url: &str, named_ca: bool, named_program: bool) -> Result<PgConnectOptions, String> {
    let mut options =
        PgConnectOptions::from_str(url).map_err(|_| "`url` is not a PostgreSQL URL".to_owned())?;
    // As in libpq, naming the authorities means that the certificate is checked against them.
    if named_ca && matches!(options.get_ssl_mode(), PgSslMode::Require) {
        options = options.ssl_mode(PgSslMode::VerifyCa);
    }
    if !named_program {
        options = options.application_name("weir");
    }
    Ok(options.options(BOUNDS).disable_statement_logging())
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.0[0];
        write!(out, "postgresql://{}@", options.get_username())?;
        for (number, server) in self.0.iter().enumerate() {
            if number > 0 {
                write!(out, ",")?;
            }
            match server.get_socket() {
                Some(socket) => write!(out, "{}", socket.display())?,
                None => write!(out, "{}", server.get_host())?,
            }
            write!(out, ":{}", server.get_port())?;
        }
        let database = options.get_database().unwrap_or(options.get_username());
        write!(out, "/{database}")
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ServerAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_no_password_and_keeps_its_promises() {
        let url = "postgresql://weir:hunter2@db.internal:6000/gateway?sslmode=require&sslrootcert=/ca.pem";
        let address = ServerAddress::parse(url).expect("an address");
        assert_eq!(
            address.to_string(),
            "postgresql://weir@db.internal:6000/gateway"
        );
        assert!(!format!("{address:?}").contains("hunter2"));
        assert!(matches!(address.0[0].get_ssl_mode(), PgSslMode::VerifyCa));
        let url = "postgresql://weir:a,b@one:6000,two/gateway?target_session_attrs=read-write&sslmode=disable";
        let address = ServerAddress::parse(url).expect("two servers");
        assert_eq!(
            address.to_string(),
            "postgresql://weir@one:6000,two:5432/gateway"
        );
        for (url, why) in [
            (
                "postgresql://weir@h/d?target_session_attrs=any",
                "a standby is not used",
            ),
            ("mysql://weir@h/d", "must begin with"),
            ("postgresql://weir@h/d?sslmode=hunter2", "sslmode"),
            ("postgresql://weir@h/d?sslcert=/a", "sslkey"),
            ("postgresql://weir@h/d?hunter2=1", "not known"),
            ("postgresql://weir@h:hunter2/d", "not a PostgreSQL URL"),
        ] {
            let refused = ServerAddress::parse(url).expect_err("refused");
            assert!(
                refused.contains(why) && !refused.contains("hunter2"),
                "{refused}"
            );
        }
    }
}
