//! `quarry health`: asks a running service, for supervisors and containers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::AppError;
use super::process::say;
use crate::cli::HealthArgs;
use crate::config::Config;
use crate::http::{ClientError, Connection};

/// More of an answer is not shown.
const SHOWN_MAX: usize = 4096;

/// `quarry health`.
pub(super) async fn health(args: &HealthArgs) -> Result<(), AppError> {
    let address = reached_at(Config::address(
        args.listen.as_deref(),
        args.config.as_deref(),
        &args.given,
    )?);
    let target = if args.ready { "/ready" } else { "/health" };
    let asked = tokio::time::timeout(Duration::from_secs(args.timeout), ask(address, target)).await;
    let (status, text) = match asked {
        Ok(answer) => answer.map_err(|error| AppError::Unwell(error.to_string()))?,
        Err(_) => {
            let sentence = format!("{address} does not answer {target} within {} s", args.timeout);
            return Err(AppError::Unwell(sentence));
        }
    };
    if status != 200 {
        return Err(AppError::Unwell(format!(
            "{address} says {status} to {target}: {text}"
        )));
    }
    say(&text);
    Ok(())
}

/// The address to reach a service at that listens on `address`.
fn reached_at(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

async fn ask(address: SocketAddr, target: &str) -> Result<(u16, String), ClientError> {
    let mut connection = Connection::open(&address.to_string()).await?;
    let mut body = Vec::new();
    let got = connection
        .get(target, |frame| {
            let room = SHOWN_MAX.saturating_sub(body.len());
            body.extend_from_slice(frame.get(..room).unwrap_or(frame));
        })
        .await?;
    let text = String::from_utf8_lossy(&body).trim_end().to_owned();
    Ok((got.status.as_u16(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_on_every_address_is_reached_on_loopback() {
        for (listens, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(reached_at(listens.parse().unwrap()).to_string(), reached);
        }
    }
}
