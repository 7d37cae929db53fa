//! What other commands were given of what `quarry run` takes: all are merged in one way.

use super::{DemoArgs, ImportChainArgs, NodeArgs, RunArgs, ServeArgs, StoreArgs, SyncArgs, VerifyArgs};

impl SyncArgs {
    /// As `quarry run` would be given it.
    #[must_use]
    pub fn settings(&self) -> RunArgs {
        RunArgs {
            store: self.store.clone(),
            node: self.node.clone(),
            reward: self.reward.clone(),
            ..RunArgs::default()
        }
    }
}

impl ServeArgs {
    /// As `quarry run` would be given it.
    #[must_use]
    pub fn settings(&self) -> RunArgs {
        RunArgs {
            store: self.store.clone(),
            node: self.store.given.nodes(),
            reward: self.reward.clone(),
            listen: self.listen.clone(),
        }
    }
}

impl VerifyArgs {
    /// As `quarry run` would be given it.
    #[must_use]
    pub fn settings(&self) -> RunArgs {
        RunArgs {
            store: self.store.clone(),
            node: self.node.clone(),
            ..RunArgs::default()
        }
    }
}

impl ImportChainArgs {
    /// As `quarry run` would be given it.
    #[must_use]
    pub fn settings(&self) -> RunArgs {
        RunArgs {
            store: self.store.clone(),
            node: NodeArgs {
                genesis: self.genesis.clone(),
                trust_node: self.trust_node,
                ..self.store.given.nodes()
            },
            reward: self.reward.clone(),
            ..RunArgs::default()
        }
    }
}

impl DemoArgs {
    /// As `quarry run` would be given it.
    #[must_use]
    pub fn settings(&self) -> RunArgs {
        RunArgs {
            store: StoreArgs {
                given: self.given.clone(),
                ..StoreArgs::default()
            },
            listen: self.listen.clone(),
            ..RunArgs::default()
        }
    }
}
