//! Reads where a database is and how to log in to it: from a URL as libpq accepts it, which overrides libpq's
//! environment variables.

use std::{env, path::Path};

use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::{
    login::BindingMode,
    tls::{TlsCertificates, TlsMode},
};

const PORT: u16 = 5432;
/// Parameters that the environment may set too. `application_name` may only be set in the URL.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGDATABASE", "dbname"),
    ("PGOPTIONS", "options"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGCHANNELBINDING", "channel_binding"),
];

pub(super) struct PostgresqlAddress {
    pub(super) host: PostgresqlHost,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Option<String>,
    /// The settings that are sent to the server first.
    pub(super) settings: Vec<(String, String)>,
    pub(super) tls: TlsMode,
    pub(super) certificates: TlsCertificates,
    pub(super) binding: BindingMode,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PostgresqlHost {
    /// The name of a machine, or its IP address.
    Name(String),
    /// The folder of the server's socket.
    Folder(String),
}

impl PostgresqlAddress {
    /// Parses a URL. The messages never repeat a part of it, since that may be a part of the password.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("`url` must begin with postgresql://".to_owned());
        }
        let url = Url::parse(url).map_err(|_| "`url` is not a PostgreSQL URL".to_owned())?;
        let mut parts = AddressParts::default();
        for (variable, name) in ENVIRONMENT {
            if let Ok(value) = env::var(variable) {
                parts
                    .set(name, &value)
                    .map_err(|problem| problem.replace("`url`", variable))?;
            }
        }
        parts.set_from(&url)?;
        parts.address()
    }
}

#[derive(Default)]
struct AddressParts {
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    application: Option<String>,
    options: Option<String>,
    tls: Option<TlsMode>,
    certificates: TlsCertificates,
    binding: BindingMode,
}

impl AddressParts {
    fn set_from(&mut self, url: &Url) -> Result<(), String> {
        let named = [
            ("host", url.host_str()),
            ("user", Some(url.username())),
            ("password", url.password()),
            ("dbname", Some(url.path().trim_start_matches('/'))),
        ];
        for (name, value) in named {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let value = percent_decode_str(value).decode_utf8();
                self.set(
                    name,
                    &value.map_err(|_| "`url` is not a PostgreSQL URL".to_owned())?,
                )?;
            }
        }
        self.port = url.port().or(self.port);
        for (name, value) in url.query_pairs() {
            self.set(&name, &value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let text = Some(value.to_owned());
        match name {
            "host" | "hostaddr" => self.host = Some(value.trim_matches(['[', ']']).to_owned()),
            "port" => {
                self.port = Some(
                    value
                        .parse()
                        .map_err(|_| "the port in `url` is not a number".to_owned())?,
                )
            }
            "user" => self.user = text,
            "password" => self.password = text,
            "dbname" => self.database = text,
            "application_name" => self.application = text,
            "options" => self.add_options(value),
            "sslmode" => self.tls = Some(mode(value)?),
            "sslrootcert" => self.certificates.authorities = text,
            "sslcert" => self.certificates.own = text,
            "sslkey" => self.certificates.own_key = text,
            // The wait is two seconds at most in any case.
            "connect_timeout" => {
                value.parse::<u32>().map_err(|_| {
                    "`connect_timeout` in `url` is not a number of seconds".to_owned()
                })?;
            }
            "channel_binding" => {
                self.binding = match value {
                    "disable" => BindingMode::Disable,
                    "prefer" => BindingMode::Prefer,
                    "require" => BindingMode::Require,
                    _ => {
                        return Err(
                            "`url` has a channel_binding other than disable, prefer or require"
                                .to_owned(),
                        );
                    }
                };
            }
            _ => match name
                .strip_prefix("options[")
                .and_then(|name| name.strip_suffix(']'))
            {
                Some(name) => {
                    let setting = format!("{name}={value}")
                        .replace('\\', "\\\\")
                        .replace(' ', "\\ ");
                    self.add_options(&format!("-c {setting}"));
                }
                // An unknown parameter may be a promise that we would not keep.
                None => {
                    return Err("`url` has a parameter that is not known; there are sslmode, sslrootcert, sslcert, \
                                sslkey, channel_binding, application_name, connect_timeout, options, host, hostaddr, port, user, password, dbname"
                        .to_owned());
                }
            },
        }
        Ok(())
    }

    fn add_options(&mut self, more: &str) {
        let options = self.options.get_or_insert_default();
        if !options.is_empty() {
            options.push(' ');
        }
        options.push_str(more);
    }

    fn address(self) -> Result<PostgresqlAddress, String> {
        let port = self.port.unwrap_or(PORT);
        let host = self.host.unwrap_or_else(|| default_host(port));
        let user = self
            .user
            .or_else(|| env::var("USER").ok())
            .filter(|user| !user.is_empty());
        let user = user.ok_or("`url` names no user")?;
        if self.certificates.own.is_some() != self.certificates.own_key.is_some() {
            return Err("`url` must have sslcert and sslkey, or neither".to_owned());
        }
        let tls = match self.tls.unwrap_or(TlsMode::Prefer) {
            // As in libpq, named authorities are used for verification.
            TlsMode::Require if self.certificates.authorities.is_some() => TlsMode::VerifyCa,
            mode => mode,
        };
        if self.binding == BindingMode::Require && tls == TlsMode::Disable {
            return Err(
                "`url` has channel_binding=require, which needs TLS: write sslmode=require or verify-full".to_owned()
            );
        }
        let application = self.application.unwrap_or_else(|| "weir".to_owned());
        let settings = [
            ("user", Some(user.clone())),
            ("database", self.database),
            // These make values the same everywhere, whatever a role or a database has set.
            ("DateStyle", Some("ISO, MDY".to_owned())),
            ("client_encoding", Some("UTF8".to_owned())),
            ("TimeZone", Some("UTC".to_owned())),
            ("extra_float_digits", Some("2".to_owned())),
            ("IntervalStyle", Some("postgres".to_owned())),
            // A backslash in a text of a statement is one.
            ("standard_conforming_strings", Some("on".to_owned())),
            ("application_name", Some(application)),
            ("options", self.options),
        ];
        let settings: Vec<_> = settings
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        if settings.iter().any(|(_, value)| value.contains('\0')) {
            return Err("`url` contains a zero byte".to_owned());
        }
        Ok(PostgresqlAddress {
            host: if host.starts_with('/') {
                PostgresqlHost::Folder(host)
            } else {
                PostgresqlHost::Name(host)
            },
            port,
            user,
            password: self.password,
            settings,
            tls,
            certificates: self.certificates,
            binding: self.binding,
        })
    }
}

fn mode(value: &str) -> Result<TlsMode, String> {
    Ok(match value.to_ascii_lowercase().as_str() {
        // `allow` begins without TLS, and a server that insists on it refuses that.
        "disable" | "allow" => TlsMode::Disable,
        "prefer" => TlsMode::Prefer,
        "require" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" => TlsMode::VerifyFull,
        _ => return Err("`url` has an sslmode that is not known".to_owned()),
    })
}

/// Returns a socket where distributions put it, or this machine by name.
fn default_host(port: u16) -> String {
    let folders = ["/var/run/postgresql", "/private/tmp", "/tmp"];
    let found = folders
        .iter()
        .find(|folder| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists());
    (*found.unwrap_or(&"localhost")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how() {
        let address = PostgresqlAddress::parse(
            "postgresql://us%40er:p%2Fw%20x@db.internal:6000/or%20ders?sslmode=verify-full&sslrootcert=/ca.pem\
             &application_name=mine&options=-c%20geqo%3Doff&options[search_path]=a%20b",
        )
        .expect("an address");
        assert_eq!(
            (&address.host, address.port),
            (&PostgresqlHost::Name("db.internal".to_owned()), 6000)
        );
        assert_eq!(
            (address.user.as_str(), address.password.as_deref()),
            ("us@er", Some("p/w x"))
        );
        assert_eq!(
            (address.tls, address.certificates.authorities.as_deref()),
            (TlsMode::VerifyFull, Some("/ca.pem"))
        );
        let setting = |name: &str| {
            address
                .settings
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| &**value)
        };
        assert_eq!(setting("database"), Some("or ders"));
        assert_eq!(setting("application_name"), Some("mine"));
        assert_eq!(setting("options"), Some("-c geqo=off -c search_path=a\\ b"));
    }

    #[test]
    fn what_providers_write_into_their_urls_is_taken_or_said_to_be_refused() {
        for (parameters, binding) in [
            ("connect_timeout=10", BindingMode::Prefer),
            ("channel_binding=prefer", BindingMode::Prefer),
            ("channel_binding=disable", BindingMode::Disable),
            (
                "sslmode=require&channel_binding=require",
                BindingMode::Require,
            ),
        ] {
            let address = PostgresqlAddress::parse(&format!("postgresql://u@h/d?{parameters}"))
                .expect(parameters);
            assert_eq!(address.binding, binding, "{parameters}");
        }
        for (parameters, word) in [
            ("channel_binding=always", "disable, prefer or require"),
            ("sslmode=disable&channel_binding=require", "needs TLS"),
            ("connect_timeout=soon", "seconds"),
        ] {
            let refused = PostgresqlAddress::parse(&format!("postgresql://u@h/d?{parameters}"))
                .map(drop)
                .expect_err(parameters);
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn hosts_may_be_names_addresses_and_folders() {
        let folder = || PostgresqlHost::Folder("/run/pg".to_owned());
        for (url, host) in [
            ("postgres://u@h/d", PostgresqlHost::Name("h".to_owned())),
            (
                "postgres://u@[::1]:1/d",
                PostgresqlHost::Name("::1".to_owned()),
            ),
            (
                "postgres://u@h/d?hostaddr=10.0.0.1",
                PostgresqlHost::Name("10.0.0.1".to_owned()),
            ),
            ("postgres://u@%2Frun%2Fpg/d", folder()),
            ("postgres:///d?host=/run/pg&user=u", folder()),
        ] {
            assert_eq!(
                PostgresqlAddress::parse(url).expect(url).host,
                host,
                "{url}"
            );
        }
    }

    #[test]
    fn every_sslmode_is_kept_and_no_other_is_guessed() {
        for (parameters, mode) in [
            ("", TlsMode::Prefer),
            ("sslmode=disable", TlsMode::Disable),
            ("sslmode=allow", TlsMode::Disable),
            ("sslmode=prefer", TlsMode::Prefer),
            ("sslmode=require", TlsMode::Require),
            ("sslmode=require&sslrootcert=a", TlsMode::VerifyCa),
            ("sslmode=prefer&sslrootcert=a", TlsMode::Prefer),
            ("sslmode=verify-ca", TlsMode::VerifyCa),
            ("sslmode=VERIFY-FULL", TlsMode::VerifyFull),
        ] {
            assert_eq!(
                PostgresqlAddress::parse(&format!("postgres://u@h/d?{parameters}"))
                    .expect(parameters)
                    .tls,
                mode
            );
        }
        for wrong in [
            "sslmode=verify",
            "sslmode=",
            "ssl-mode=require",
            "channel_binding=",
            "sslcert=a",
            "port=x",
        ] {
            let problem = PostgresqlAddress::parse(&format!("postgres://u:hunter2@h/d?{wrong}"))
                .err()
                .expect(wrong);
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
