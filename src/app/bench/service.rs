//! The service that is asked: one of our own, or one that runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::bed::{Bed, Lent};
use crate::api::{Api, Settings as ApiSettings};
use crate::app::AppError;
use crate::bench::answer::{Failure, Way};
use crate::bench::statistics::StoreFacts;
use crate::http::{Handler, Limits, Pool, PoolLimits, serve};
use crate::shutdown::{Shutdown, Trigger, pair};

/// How long a running service may take to say what it serves.
const CHECK_TIME: Duration = Duration::from_secs(10);

/// The service that is asked.
pub(super) struct Service {
    pub(super) ways: Vec<Way>,
    pub(super) told: String,
    /// What ends our own.
    own: Option<(Trigger, tokio::task::JoinHandle<usize>)>,
}

impl Service {
    /// A running one, which has the block that is the head here.
    pub(super) async fn of(authority: String, facts: &StoreFacts) -> Result<Self, AppError> {
        let check = tokio::time::timeout(CHECK_TIME, check(&authority, facts));
        check.await.unwrap_or_else(|_| {
            let seconds = CHECK_TIME.as_secs();
            Err(AppError::Usage(format!(
                "the service at {authority}: no answer within {seconds} s"
            )))
        })?;
        Ok(Self {
            told: format!("a running service at {authority}, over HTTP only"),
            ways: vec![Way::Http(authority)],
            own: None,
        })
    }

    /// One of our own, on a port of its own, without a limit on the rate and without a log of requests.
    pub(super) async fn start(bed: &Arc<Bed>) -> Result<Self, AppError> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(AppError::io("listen on 127.0.0.1"))?;
        let address = listener.local_addr().map_err(AppError::io("read the address"))?;
        let pool_limits = PoolLimits {
            // However many clients ask for long pages: they are our own, and take them.
            unsent_bytes_max: usize::MAX,
            ..PoolLimits::default()
        };
        let pool = Pool::new(pool_limits).map_err(AppError::io("start the threads of the service"))?;
        let chains = Arc::new(Lent(Arc::clone(bed)));
        let api = Arc::new(Api::new(chains, pool, ApiSettings::default()));
        let (trigger, mut shutdown): (Trigger, Shutdown) = pair();
        let handler = Arc::clone(&api) as Arc<dyn Handler>;
        let limits = Limits {
            drain_timeout: Duration::from_secs(2),
            ..Limits::default()
        };
        let serving = serve(listener, api, limits, async move { shutdown.fired().await });
        Ok(Self {
            ways: vec![Way::InProcess(handler), Way::Http(address.to_string())],
            told: "a service in this process, over its handler and over a loopback port; clients share its cores".to_owned(),
            own: Some((trigger, tokio::spawn(serving))),
        })
    }

    pub(super) const fn is_own(&self) -> bool {
        self.own.is_some()
    }

    pub(super) async fn end(self) {
        drop(self.ways);
        if let Some((trigger, serving)) = self.own {
            trigger.fire();
            let _ = serving.await;
        }
    }
}

/// Refuses a service that does not have the block that is the head here, or begins with another block.
async fn check(authority: &str, facts: &StoreFacts) -> Result<(), AppError> {
    let way = Way::Http(authority.to_owned());
    let client = way.client().await;
    let mut client = client.map_err(|error| AppError::Usage(error.to_string()))?;
    let mut hash = async |number: u64| {
        let target = format!(
            "/api/proxy?action=eth_getBlockByNumber&boolean=false&tag=0x{number:x}&chain={}",
            facts.chain
        );
        let body = client.body(&target).await?;
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let hash = answer.pointer("/result/hash").and_then(serde_json::Value::as_str);
        Ok::<_, Failure>(hash.map(str::to_owned))
    };
    let refused = |why: String| AppError::Usage(format!("the service at {authority}{why}"));
    let head = hash(facts.head)
        .await
        .map_err(|failure| refused(format!(": {}", failure.why)))?;
    if head != Some(facts.head_hash.to_string()) {
        return Err(refused(format!(
            " has not this store's block {} {}: it serves another chain, or is behind",
            facts.head, facts.head_hash
        )));
    }
    // What a store does not have is refused, a block that there is not is null.
    let mut has = async |number: u64| match hash(number).await {
        Ok(found) => Ok(found.is_some()),
        Err(failure) if way.withholds(&failure) => Ok(false),
        Err(failure) => Err(refused(format!(": {}", failure.why))),
    };
    let begins_before = match facts.first_block.checked_sub(1) {
        Some(before) => has(before).await?,
        None => false,
    };
    if begins_before || !has(facts.first_block).await? {
        return Err(refused(format!(
            " does not begin with this store's first block {}: it serves another store of the chain",
            facts.first_block
        )));
    }
    Ok(())
}
