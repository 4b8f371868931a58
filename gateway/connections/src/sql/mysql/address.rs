//! Reads where a database is and how to log in to it.

use percent_encoding::percent_decode_str;
use reqwest::Url;
use sqlx::{
    ConnectOptions,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};

/// Statements that the server keeps for a session.
const STATEMENTS_MAX: usize = 64;
const KNOWN: &str = "`url` has a parameter that is not known; there are sslmode, sslrootcert, sslcert, sslkey, socket and \
     connect_timeout";

/// Parses a URL. The messages never repeat a part of it, since that may be a part of the password.
pub(super) fn read_address(url: &str) -> Result<MySqlConnectOptions, String> {
    if !url.starts_with("mysql://") && !url.starts_with("mariadb://") {
        return Err("`url` must begin with mysql:// or mariadb://".to_owned());
    }
    let wrong = || "`url` is not a MySQL URL".to_owned();
    let url = Url::parse(url).map_err(|_| wrong())?;
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(|text| text.into_owned()).map_err(|_| wrong())
    };
    let mut options = MySqlConnectOptions::new()
        .statement_cache_capacity(STATEMENTS_MAX)
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None)
        .disable_statement_logging();
    let host = url.host_str().filter(|host| !host.is_empty());
    options = options.host(host.unwrap_or("localhost").trim_matches(['[', ']']));
    if let Some(port) = url.port() {
        options = options.port(port);
    }
    let user = decoded(url.username())?;
    if user.is_empty() {
        return Err("`url` names no user: write mysql://USER:PASSWORD@HOST/DATABASE".to_owned());
    }
    options = options.username(&user);
    if let Some(password) = url.password() {
        options = options.password(&decoded(password)?);
    }
    let database = decoded(url.path().trim_start_matches('/'))?;
    if database.is_empty() {
        return Err(
            "`url` names no database: write mysql://USER:PASSWORD@HOST/DATABASE".to_owned(),
        );
    }
    options = options.database(&database);
    let mut mode = MySqlSslMode::Preferred;
    let mut authorities = None;
    let (mut has_certificate, mut has_key) = (false, false);
    for (name, value) in url.query_pairs() {
        match &*name {
            "sslmode" | "ssl-mode" => mode = read_mode(&value)?,
            "sslrootcert" | "ssl-ca" => authorities = Some(value.into_owned()),
            "sslcert" | "ssl-cert" => {
                has_certificate = true;
                options = match is_pem(&value) {
                    true => options.ssl_client_cert_from_pem(value.as_bytes()),
                    false => options.ssl_client_cert(&*value),
                };
            }
            "sslkey" | "ssl-key" => {
                has_key = true;
                options = match is_pem(&value) {
                    true => options.ssl_client_key_from_pem(value.as_bytes()),
                    false => options.ssl_client_key(&*value),
                };
            }
            "socket" => options = options.socket(&*value),
            // The wait is two seconds at most in any case.
            "connect_timeout" => {
                value.parse::<u32>().map_err(|_| {
                    "`connect_timeout` in `url` is not a number of seconds".to_owned()
                })?;
            }
            // An unknown parameter may be a promise that we would not keep.
            _ => return Err(KNOWN.to_owned()),
        }
    }
    if has_certificate != has_key {
        return Err("`url` must have sslcert and sslkey, or neither".to_owned());
    }
    if let Some(authorities) = authorities {
        if !matches!(mode, MySqlSslMode::VerifyIdentity) {
            return Err("`url` has an sslrootcert, which goes with sslmode=verify-full".to_owned());
        }
        options = match is_pem(&authorities) {
            true => options.ssl_ca_from_pem(authorities.into_bytes()),
            false => options.ssl_ca(&authorities),
        };
    }
    Ok(options.ssl_mode(mode))
}

fn is_pem(text: &str) -> bool {
    text.trim_start().starts_with("-----BEGIN")
}

/// Reads a mode by the word that it has for PostgreSQL or by MySQL's own.
fn read_mode(value: &str) -> Result<MySqlSslMode, String> {
    Ok(
        match value.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => MySqlSslMode::Disabled,
            "prefer" | "preferred" => MySqlSslMode::Preferred,
            "require" | "required" => MySqlSslMode::Required,
            "verify-full" | "verify-identity" => MySqlSslMode::VerifyIdentity,
            // Any server with a certificate of a public authority would pass.
            "verify-ca" => {
                return Err(
                    "`url` has sslmode=verify-ca, which is not offered: write verify-full"
                        .to_owned(),
                );
            }
            _ => return Err("`url` has an sslmode that is not known".to_owned()),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how() {
        let address = read_address(
            "mariadb://us%40er:p%2Fw%20x@db.internal:6000/or%20ders?sslmode=verify-full&sslrootcert=/ca.pem",
        )
        .expect("an address");
        assert_eq!(address.get_host(), "db.internal");
        assert_eq!(address.get_port(), 6000);
        assert_eq!(address.get_username(), "us@er");
        assert_eq!(address.get_database(), Some("or ders"));
        let address = read_address("mysql://u@localhost/d?socket=/run/s.sock").expect("a socket");
        assert!(address.get_socket().is_some());
    }

    #[test]
    fn every_mode_is_kept_and_no_other_is_guessed() {
        for (parameters, mode) in [
            ("", "Preferred"),
            ("sslmode=disable", "Disabled"),
            ("ssl-mode=REQUIRED", "Required"),
            ("ssl-mode=VERIFY_IDENTITY", "VerifyIdentity"),
            ("sslmode=verify-full&sslrootcert=a", "VerifyIdentity"),
        ] {
            let address = read_address(&format!("mysql://u@h/d?{parameters}")).expect(parameters);
            assert_eq!(format!("{:?}", address.get_ssl_mode()), mode);
        }
        for wrong in [
            "mysql://u:hunter2@h/d?sslmode=verify-ca",
            "mysql://u:hunter2@h/d?sslmode=",
            "mysql://u:hunter2@h/d?sslmode=require&sslrootcert=a",
            "mysql://u:hunter2@h/d?sslcert=a",
            "mysql://u:hunter2@h/d?charset=latin1",
            "mysql://u:hunter2@h/",
            "mysql://h/d",
            "postgresql://u:hunter2@h/d",
            "hunter2",
        ] {
            let problem = read_address(wrong).expect_err(wrong);
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
