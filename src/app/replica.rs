//! `quarry serve --secondary`: stores that another process writes, served as it goes on.

use std::sync::Arc;
use std::time::Duration;

use super::AppError;
use super::chains::{Chain, Stated};
use super::process::{blocking, on_signals};
use super::run::{bind, serve_chains};
use super::supervisor::open_served;
use crate::clock;
use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::status::{ChainStatus, ReplicaState};
use crate::store::{Heartbeat, Look, Observed, Replica, Store, StoreError};

/// How often is looked for news.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// And at most after a failure that goes on: each look then opens all tables anew.
const LOOK_EVERY_FAILING: Duration = Duration::from_secs(10);
/// A failure is logged this often while it lasts.
const WORD_EVERY: Duration = Duration::from_secs(30);
/// A writer that gives no sign of life for this long is taken for gone.
const SILENCE_MAX: f64 = 5.0;

fn side_store(store: &Store) -> Arc<Observed> {
    Observed::follow(store.directory(), &store.identity()).unwrap_or_else(|| Arc::new(Observed::in_memory()))
}

/// Serves what is stored, and follows it.
pub(super) async fn serve(config: Config) -> Result<(), AppError> {
    let (trigger, shutdown) = on_signals()?;
    let listener = bind(config.listen).await?;
    let mut chains = Vec::new();
    let mut followers = tokio::task::JoinSet::new();
    // A store that is made later is served from the next start on.
    for (name, open) in open_served(&config) {
        let opened = blocking(move || {
            let (replica, store) = Replica::open(&open)?;
            let observed = side_store(&store);
            Ok((replica, store, observed))
        });
        match opened.await {
            Ok((replica, store, observed)) => {
                let chain = Chain::followed(name, store, observed, Stated::of(&config, name));
                let follower = Follower {
                    replica,
                    chain: Arc::clone(&chain),
                    said: None,
                };
                follower.tell(Ok(()));
                followers.spawn(follow(follower, shutdown.clone()));
                chains.push(chain);
            }
            Err(AppError::Store(StoreError::Absent { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    if chains.is_empty() {
        return Err(StoreError::Absent {
            path: config.data_dir,
        }
        .into());
    }
    serve_chains(listener, chains, &config.service, shutdown).await?;
    trigger.fire();
    while followers.join_next().await.is_some() {}
    Ok(())
}

async fn follow(mut follower: Follower, mut shutdown: Shutdown) {
    let mut pause = LOOK_EVERY;
    while shutdown.unless(tokio::time::sleep(pause)).await.is_some() {
        let looked = tokio::task::spawn_blocking(move || {
            let failed = follower.look();
            (follower, failed)
        });
        match looked.await {
            Ok((back, failed)) => {
                follower = back;
                pause = match failed {
                    true => LOOK_EVERY_FAILING.min(2 * pause),
                    false => LOOK_EVERY,
                };
            }
            Err(error) => {
                tracing::error!(%error, "the store is not followed any more");
                return;
            }
        }
    }
}

/// What follows one chain.
struct Follower {
    replica: Replica,
    chain: Arc<Chain>,
    /// What failed last, and when it was said.
    said: Option<(std::time::Instant, String)>,
}

impl Follower {
    /// Answers whether it failed.
    fn look(&mut self) -> bool {
        let looked = self.replica.look();
        let failed = looked.is_err();
        let outcome = match looked {
            Ok(Look::Newer(store)) => {
                self.chain.show(store);
                Ok(())
            }
            Ok(Look::Replaced(store)) => {
                tracing::info!(chain = %self.chain.name, "another store lies there now, following that one");
                let observed = side_store(&store);
                self.chain.set_store(store, observed);
                Ok(())
            }
            Ok(Look::Same) => Ok(()),
            Ok(Look::Held) => Err("waits for answers that are taken slowly".to_owned()),
            Ok(Look::Moving) => Err("waits for the writer".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        self.side_store();
        self.log(outcome.as_ref().err());
        self.tell(outcome);
        failed
    }

    /// The side store catches up beside its readers: its rows stand each for themselves.
    fn side_store(&self) {
        let Some(store) = self.chain.store() else { return };
        let observed = self.chain.observed();
        let follows = observed
            .as_ref()
            .is_some_and(|observed| observed.is_followed() && matches!(observed.catch_up(), Ok(true)));
        if !follows && let Some(observed) = Observed::follow(store.directory(), &store.identity()) {
            self.chain.set_observed(observed);
        }
    }

    fn log(&mut self, failure: Option<&String>) {
        let Some(failure) = failure else {
            self.said = None;
            return;
        };
        let due = self
            .said
            .as_ref()
            .is_none_or(|(then, text)| text != failure || clock::now() - *then >= WORD_EVERY);
        // What lasts for one look is not worth a word.
        if due && self.said.is_some() {
            tracing::warn!(chain = %self.chain.name, "not followed at the moment: {failure}");
        }
        if due {
            self.said = Some((clock::now(), failure.clone()));
        }
    }

    /// Keeps in the status how far the replica is.
    fn tell(&self, outcome: Result<(), String>) {
        let (Some(status), Some(store)) = (&self.chain.status, self.chain.store()) else {
            return;
        };
        let now = clock::unix_seconds(clock::wall());
        let beat = Heartbeat::read(store.directory());
        let before = status.replica().unwrap_or_default();
        let view = store.view();
        let own = view.head().map(|head| head.number);
        status.set_replica(ReplicaState {
            seen: if outcome.is_ok() { now } else { before.seen },
            writer_seen: beat.map(|beat| beat.time),
            writer_indexed: beat.and_then(|beat| beat.indexed),
        });
        // As far as anybody knows: blocks up to there exist and are not here yet.
        let far = beat.and_then(|beat| beat.node_head.max(beat.indexed)).max(own);
        if let Some(far) = far {
            let heard = beat.and_then(|beat| beat.node_heard.or(Some(beat.time as u64)));
            status.set_node_head_at(far, heard.unwrap_or(now as u64));
        }
        if let Some(finalized) = view.finalized() {
            status.set_finalized(finalized);
        }
        if let Some(safe) = beat.and_then(|beat| beat.safe) {
            status.set_safe(safe);
        }
        let alive = beat.is_some_and(|beat| now - beat.time <= SILENCE_MAX);
        status.set_node_up(alive);
        status.set_following(outcome.is_ok());
        say(status, outcome, alive);
    }
}

fn say(status: &ChainStatus, outcome: Result<(), String>, alive: bool) {
    status.set_message(match (outcome, alive) {
        (Err(failure), _) => format!("replica: not followed at the moment: {failure}"),
        (Ok(()), true) => "replica: following the writer".to_owned(),
        (Ok(()), false) => "replica: nobody writes the store at the moment".to_owned(),
    });
}
