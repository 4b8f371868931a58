//! The address of the database: a URL as libpq knows it.

use std::{fmt, str::FromStr as _};

use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgSslMode},
};

/// What a URL may say beside the host, the user, the password and the database.
const PARAMETERS: [&str; 12] = [
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
];
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

/// Where a state in PostgreSQL is, and how to log in there. It shows no password.
#[derive(Clone)]
pub struct ServerAddress(PgConnectOptions);

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
        let mut options = PgConnectOptions::from_str(url)
            .map_err(|_| "`url` is not a PostgreSQL URL".to_owned())?;
        // As in libpq, to name the authorities is to want them to be asked.
        if value("sslrootcert").is_some() && matches!(options.get_ssl_mode(), PgSslMode::Require) {
            options = options.ssl_mode(PgSslMode::VerifyCa);
        }
        if value("application_name").is_none() {
            options = options.application_name("weir");
        }
        Ok(Self(options.options(BOUNDS).disable_statement_logging()))
    }

    /// The same for one that changes nothing.
    pub(crate) fn to_read(&self) -> Self {
        let options = self.0.clone();
        Self(options.options([("default_transaction_read_only", "on")]))
    }

    /// Returns how to connect, for what else is kept in the same database.
    pub fn options(&self) -> &PgConnectOptions {
        &self.0
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.0;
        write!(out, "postgresql://{}@", options.get_username())?;
        match options.get_socket() {
            Some(socket) => write!(out, "{}", socket.display())?,
            None => write!(out, "{}", options.get_host())?,
        }
        let database = options.get_database().unwrap_or(options.get_username());
        write!(out, ":{}/{database}", options.get_port())
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
        assert!(matches!(address.0.get_ssl_mode(), PgSslMode::VerifyCa));
        for (url, why) in [
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
