//! What the contracts of the demo's tokens said at every block, recorded with the chain: it stands in for the node
//! that `quarry demo` has not.

use std::collections::HashMap;

use super::AppError;
use crate::api::{Upstream, UpstreamError, UpstreamFuture};
use crate::model::{Address, BlockId, TokenMetadata, TokenVerdict, U256, ZeroAddress};
use crate::query::{QueryError, Reader};
use crate::store::{Observed, ToldBalance};

/// Names and conventions of the tokens.
static TOKENS: &[u8] = include_bytes!("../../demo/tokens.json");
/// Their supplies and balances by block.
static STATE: &[u8] = include_bytes!("../../demo/state.json.zst");

/// A token as the first file has it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct DemoToken {
    address: Address,
    name: Option<String>,
    symbol: Option<String>,
    decimals: Option<u8>,
    zero_address_holds: bool,
}

#[derive(serde::Deserialize)]
struct DemoState {
    native: HashMap<Address, Changes>,
    tokens: HashMap<String, Recorded>,
}

/// What a contract said: (block, value from then on), ascending.
#[derive(serde::Deserialize)]
struct Recorded {
    address: Address,
    supply: Changes,
    balances: HashMap<Address, Changes>,
}

#[derive(Default, serde::Deserialize)]
struct Changes(Vec<(u64, String)>);

impl Changes {
    fn at(&self, block: u64) -> U256 {
        let until = self.0.partition_point(|(change, _)| *change <= block);
        let last = until.checked_sub(1).and_then(|place| self.0.get(place));
        last.and_then(|(_, value)| value.parse().ok()).unwrap_or_default()
    }

    /// The blocks of the changes, and those before them.
    fn blocks(&self) -> impl Iterator<Item = u64> {
        self.0
            .iter()
            .flat_map(|&(block, _)| [block.saturating_sub(1), block])
    }
}

/// The recorded answers.
pub(super) struct DemoNode {
    native: HashMap<Address, Changes>,
    tokens: HashMap<Address, Recorded>,
}

impl std::fmt::Debug for DemoNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DemoNode")
            .field("tokens", &self.tokens.len())
            .finish_non_exhaustive()
    }
}

fn unreadable(error: impl std::fmt::Display) -> AppError {
    AppError::Usage(format!("the demo's tokens: {error}"))
}

impl DemoNode {
    /// Reads the recording.
    pub(super) fn load() -> Result<Self, AppError> {
        let text = zstd::decode_all(STATE).map_err(unreadable)?;
        let state: DemoState = serde_json::from_slice(&text).map_err(unreadable)?;
        let tokens = state.tokens.into_values();
        Ok(Self {
            native: state.native,
            tokens: tokens.map(|token| (token.address, token)).collect(),
        })
    }

    /// Fills the side store with what comparing the ledger with a node would have put there.
    pub(super) fn tell(&self, observed: &Observed, reader: &Reader) -> Result<(), AppError> {
        let tokens: Vec<DemoToken> = serde_json::from_slice(TOKENS).map_err(unreadable)?;
        let head = reader.head();
        for token in self.tokens.keys() {
            // All were asked; what is not listed tells nothing.
            observed.put_metadata(token, &TokenMetadata::default().into());
        }
        for token in tokens {
            let metadata = TokenMetadata {
                name: token.name,
                symbol: token.symbol,
                decimals: token.decimals,
            };
            observed.put_metadata(&token.address, &metadata.into());
            let Some(recorded) = self.tokens.get(&token.address) else {
                continue;
            };
            let zero_address = if token.zero_address_holds {
                ZeroAddress::Holds
            } else {
                ZeroAddress::Burns
            };
            self.judge(recorded, zero_address, head, observed, reader)?;
        }
        Ok(())
    }

    fn judge(
        &self,
        recorded: &Recorded,
        zero_address: ZeroAddress,
        head: BlockId,
        observed: &Observed,
        reader: &Reader,
    ) -> Result<(), AppError> {
        let (exact, compared) = explains(recorded, zero_address, reader)?;
        let reason = if exact {
            ""
        } else {
            "its events do not tell what it said"
        };
        let verdict = TokenVerdict {
            exact,
            zero_address,
            checked: head,
            anchor: None,
            compared,
            reason: reason.to_owned(),
            supply: Some(recorded.supply.at(head.number)),
            differed: None,
        };
        observed.put_verdict(&recorded.address, &verdict);
        if !exact {
            let told = recorded.balances.iter().map(|(holder, changes)| ToldBalance {
                holder: *holder,
                balance: changes.at(head.number),
                block: head.number,
            });
            let told: Vec<_> = told.collect();
            observed.put_balances(&recorded.address, &told, Some((None, true)));
        }
        Ok(())
    }

    fn token(&self, token: &Address) -> Result<&Recorded, UpstreamError> {
        let unknown = || UpstreamError::Untold(format!("the demo has no token {token}"));
        self.tokens.get(token).ok_or_else(unknown)
    }
}

/// Whether the ledger of a token says what its contract said, and how many values were compared.
fn explains(recorded: &Recorded, zero: ZeroAddress, reader: &Reader) -> Result<(bool, u64), QueryError> {
    let head = reader.head().number;
    let Some(token) = reader.token(&recorded.address)? else {
        return Ok((false, 0));
    };
    let (mut exact, mut compared) = (!token.is_doubted(), 0);
    for block in recorded.supply.blocks().chain([head]) {
        let (minted, to_zero) = reader.token_sums(&token, block)?;
        exact &= zero.supply(minted, to_zero) == recorded.supply.at(block);
        compared += 1;
    }
    for (holder, changes) in recorded.balances.iter().filter(|(holder, _)| !holder.is_zero()) {
        for block in changes.blocks().chain([head]) {
            exact &= reader.token_balance_at(&token, holder, block)? == changes.at(block);
            compared += 1;
        }
    }
    Ok((exact, compared))
}

impl Upstream for DemoNode {
    fn transaction_count(&self, _: Address, _: u64) -> UpstreamFuture<'_, u64> {
        let nobody = UpstreamError::Untold("the demo has no node".to_owned());
        Box::pin(async move { Err(nobody) })
    }

    fn token_supply(&self, token: Address, block: u64) -> UpstreamFuture<'_, U256> {
        let supply = self.token(&token).map(|token| token.supply.at(block));
        Box::pin(async move { supply })
    }

    fn token_balance(&self, token: Address, holder: Address, block: u64) -> UpstreamFuture<'_, U256> {
        let balance = self.token(&token).map(|token| {
            let changes = token.balances.get(&holder);
            changes.map_or(U256::ZERO, |changes| changes.at(block))
        });
        Box::pin(async move { balance })
    }

    fn token_metadata(&self, _token: Address, _block: u64) -> UpstreamFuture<'_, TokenMetadata> {
        // What contracts of the recorded chain say of themselves is held from the beginning: others say nothing.
        Box::pin(async { Ok(TokenMetadata::default()) })
    }

    fn balance(&self, address: Address, block: u64) -> UpstreamFuture<'_, U256> {
        let changes = self.native.get(&address);
        let balance = changes.map_or(U256::ZERO, |changes| changes.at(block));
        Box::pin(async move { Ok(balance) })
    }
}
