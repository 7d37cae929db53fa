//! `quarry serve --secondary`: stores that another process writes, served as it goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

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
/// What keeps it from following is logged this often while it lasts.
const WORD_EVERY: Duration = Duration::from_secs(30);
/// Waiting is not trouble before it has lasted for so long.
const WAITS_MAX: Duration = Duration::from_secs(5);

fn side_store(store: &Store) -> Arc<Observed> {
    Observed::follow_or_tell(store.directory(), &store.identity())
        .unwrap_or_else(|| Arc::new(Observed::in_memory()))
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
                    words: Words::default(),
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
    words: Words,
}

/// Since when a store is not followed, and what was said of it last.
#[derive(Default)]
struct Words {
    since: Option<Instant>,
    said: Option<(Instant, String)>,
}

impl Words {
    /// Whether to say at `now` what keeps it from following for more than `patience`. What lasts for one look is not worth a word.
    fn are_due(&mut self, now: Instant, reason: &str, patience: Duration) -> bool {
        let Some(since) = self.since else {
            self.since = Some(now);
            return false;
        };
        let due = match &self.said {
            None => now - since >= patience,
            Some((then, said)) if said == reason => now - *then >= WORD_EVERY,
            // Reasons may take turns.
            Some((then, _)) => now - *then >= LOOK_EVERY_FAILING,
        };
        if due {
            self.said = Some((now, reason.to_owned()));
        }
        due
    }

    /// It follows; answers whether anything else was said before.
    fn end(&mut self) -> bool {
        std::mem::take(self).said.is_some()
    }
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
        self.log(outcome.as_ref().err(), failed);
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
        // What keeps it from it was said at the start, or is over at a later look.
        if !follows && let Ok(Some(observed)) = Observed::follow(store.directory(), &store.identity()) {
            self.chain.set_observed(observed);
        }
    }

    fn log(&mut self, reason: Option<&String>, failed: bool) {
        let patience = if failed { Duration::ZERO } else { WAITS_MAX };
        match reason {
            Some(reason) if self.words.are_due(clock::now(), reason, patience) => {
                tracing::warn!(chain = %self.chain.name, "not followed at the moment: {reason}");
            }
            None if self.words.end() => {
                tracing::info!(chain = %self.chain.name, "the store is followed again");
            }
            _ => {}
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
        let state = ReplicaState {
            seen: if outcome.is_ok() { now } else { before.seen },
            writer_seen: beat.map(|beat| beat.time),
            writer_indexed: beat.and_then(|beat| beat.indexed),
        };
        let alive = state.has_writer();
        status.set_replica(state);
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
        // A writer of an earlier version does not tell.
        let node_up = beat.and_then(|beat| beat.node_up).unwrap_or(true);
        status.set_node_up(alive && node_up);
        // The last word of a writer that is gone is no word on the next one's sync.
        let stopped = alive && beat.is_some_and(|beat| beat.stopped);
        status.set_stopped(stopped);
        status.set_following(outcome.is_ok() && alive && !stopped);
        say(status, outcome, alive);
    }
}

fn say(status: &ChainStatus, outcome: Result<(), String>, alive: bool) {
    status.set_message(match (outcome, alive) {
        (Err(failure), _) => format!("replica: not followed at the moment: {failure}"),
        (Ok(()), true) if status.stopped() => {
            "replica: the writer's sync stopped, its /status says why".to_owned()
        }
        (Ok(()), true) => "replica: following the writer".to_owned(),
        (Ok(()), false) => "replica: nobody writes the store at the moment".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_it_from_following_is_said_at_the_second_look_and_at_times() {
        let began = clock::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut words = Words::default();
        let mut due = |ms, reason| words.are_due(at(ms), reason, Duration::ZERO);
        assert!(!due(0, "a"), "it may last for one look");
        assert!(due(400, "a"));
        assert!(!due(10_400, "a") && !due(30_399, "a"));
        assert!(due(30_400, "a"));
        // Another reason is said soon, and reasons that take turns are not said at each look.
        assert!(!due(31_000, "b") && due(40_400, "b"));
        assert!(!due(40_600, "a") && !due(40_800, "b"));
        assert!(words.end() && !words.end());
        // From the beginning.
        assert!(!words.are_due(at(41_000), "b", Duration::ZERO));
        assert!(!words.end());
        // Waiting is said once it lasts.
        let mut due = |ms| words.are_due(at(ms), "waits", WAITS_MAX);
        assert!(!due(50_000) && !due(50_200) && !due(54_999));
        assert!(due(55_000) && !due(55_200));
    }
}
