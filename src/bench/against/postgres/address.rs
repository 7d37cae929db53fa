//! Where a database is, and how that may be shown.

use tokio_postgres::config::{Config, Host};

use super::PostgresError;

pub(super) fn parsed(url: &str) -> Result<Config, PostgresError> {
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let config = is_url.then(|| url.parse::<Config>().ok()).flatten();
    let mut config = config.ok_or(PostgresError::Url)?;
    // Where other clients look for it, too.
    if config.get_password().is_none()
        && let Some(password) = std::env::var_os("PGPASSWORD")
    {
        config.password(password.as_encoded_bytes());
    }
    Ok(config)
}

/// A database's URL as it may be shown: hosts and ports, without user, password, database and options.
///
/// # Errors
///
/// When it is none.
pub fn shown(url: &str) -> Result<String, PostgresError> {
    let config = parsed(url)?;
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| {
        let host = match host {
            // Of a password with a slash in it the rest would stand here.
            Host::Tcp(name) => name.rsplit('@').next().unwrap_or(name).to_owned(),
            Host::Unix(path) => path.display().to_string(),
        };
        let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        format!("{host}:{port}")
    });
    Ok(format!("postgres://{}", hosts.collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown() {
        for (url, expected) in [
            (
                "postgres://me:se/c?r%40et@db.example:5433/logs?connect_timeout=3",
                "postgres://db.example:5433",
            ),
            (
                "postgresql://db.example/logs?user=me&password=secret",
                "postgres://db.example:5432",
            ),
            ("postgres://me@127.0.0.1:5432", "postgres://127.0.0.1:5432"),
        ] {
            assert_eq!(shown(url).unwrap(), expected);
        }
        let failure = shown("host=db.example password=secret").unwrap_err().to_string();
        assert!(!failure.contains("secret"), "{failure}");
    }
}
