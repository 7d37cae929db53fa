//! `quarry inspect --key`: one row of a table, decoded.

use super::AppError;
use super::process::say;
use crate::codec::Corrupt;
use crate::codec::amount::read_amount;
use crate::codec::bytes::Reader;
use crate::codec::chunk::UnitReader;
use crate::codec::keys;
use crate::codec::log_row::RunReader;
use crate::codec::posting;
use crate::codec::tokens::{self, TokenState, read_supply};
use crate::codec::value::{
    AccountRow, Checkpoint, Creation, DayRow, Finality, FundingRow, Identity, NONCE_UNKNOWN, SupplyRow, Tail,
    Undo, decode_block, decode_new_addresses,
};
use crate::model::{Address, B256};
use crate::store::{Summed, Table, View};

/// How many postings and rows of a value are listed.
const SHOWN_MAX: usize = 64;

/// Shows the row with a key, or says which one comes next.
pub(super) fn one_key(view: &View, table: &str, written: &str) -> Result<(), AppError> {
    let table = Table::from_name(table).ok_or_else(|| {
        let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
        AppError::NotUnderstood(format!("no table `{table}`: one of {}", names.join(", ")))
    })?;
    let drawing = table.describe().key;
    let key = read_key(drawing, written).map_err(|reason| {
        AppError::NotUnderstood(format!(
            "`{}` is not a key of `{}`: {reason}; its parts are {drawing}",
            written.escape_debug(),
            table.name()
        ))
    })?;
    say(&format!("key        {drawing}"));
    say(&format!("           0x{}", const_hex::encode(&key)));
    if let Some(value) = view.get(table, &key)? {
        show(table, &key, &value);
        return Ok(());
    }
    let mut scan = view.scan_all(table)?;
    match scan.seek(&key)? {
        Some((next, value)) => {
            say("no such row; the next one is");
            say(&format!("           0x{}", const_hex::encode(next)));
            show(table, next, value);
        }
        None => say("no such row, and none behind it"),
    }
    Ok(())
}

/// A key of parts that slashes separate, each in hex (`0x`), as a number, or by name, as the drawing of the key has it.
/// Trailing parts may be left out: what comes next is shown then.
fn read_key(drawing: &str, written: &str) -> Result<Vec<u8>, String> {
    let mut key = Vec::new();
    let fields = drawing
        .split('|')
        .map(str::trim)
        .filter(|field| !field.is_empty());
    let mut fields = fields.fuse();
    for part in written.split('/') {
        let field = fields.next().unwrap_or("");
        let hex = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
        if let Some(hex) = hex {
            key.extend(const_hex::decode(hex).map_err(|_| format!("`{part}` is not hex"))?);
        } else if field.starts_with("name") {
            key.extend_from_slice(part.as_bytes());
        } else if part == "open" && field.contains("ff..ff") {
            key.extend_from_slice(&u64::MAX.to_be_bytes());
        } else if let Some(width) = width(field) {
            let number: u64 = part
                .parse()
                .map_err(|_| format!("`{part}` is neither 0x and hex nor a number"))?;
            let bytes = number.to_be_bytes();
            let (above, low) = bytes.split_at(bytes.len() - width);
            if above.iter().any(|&byte| byte != 0) {
                return Err(format!("{number} does not fit {width} bytes"));
            }
            key.extend_from_slice(low);
        } else {
            // The whole key in hex without a prefix, as it is printed elsewhere.
            key.extend(const_hex::decode(part).map_err(|_| format!("`{part}` is not hex"))?);
        }
    }
    Ok(key)
}

/// Bytes of a number in a key.
fn width(field: &str) -> Option<usize> {
    let word = |wanted: &str| field.split([' ', ':', ';', ',']).any(|word| word == wanted);
    [("u8", 1), ("u32", 4), ("u64", 8)]
        .into_iter()
        .find_map(|(name, width)| word(name).then_some(width))
}

fn show(table: Table, key: &[u8], value: &[u8]) {
    let list = match table {
        Table::Postings => keys::Term::decode(key).ok().map(|(term, last)| match last {
            keys::OPEN => format!("{term:?}, open"),
            last => format!("{term:?}, to {last}"),
        }),
        Table::OpenPostings => {
            let term = keys::Term::decode_piece(key).ok();
            term.map(|term| format!("{term:?}, the open piece"))
        }
        _ => None,
    };
    if let Some(list) = list {
        say(&format!("           {list}"));
    }
    say(&format!("value      {}", table.describe().value));
    say(&format!("           0x{}", const_hex::encode(value)));
    match decoded(table, key, value) {
        Ok(lines) => {
            for line in lines {
                say(&format!("           {line}"));
            }
        }
        Err(corrupt) => say(&format!("           {corrupt}: `quarry verify` tells more")),
    }
}

/// What a value says, in lines.
fn decoded(table: Table, key: &[u8], value: &[u8]) -> Result<Vec<String>, Corrupt> {
    let id = || {
        let bytes: Result<[u8; 4], _> = value.try_into();
        bytes.map(u32::from_be_bytes).map_err(|_| Corrupt("id"))
    };
    let line = match table {
        Table::Meta => match key {
            b"identity" => {
                let identity = Identity::decode(value)?;
                format!(
                    "version {}, chain id {}, genesis {}, from block {}, static rewards {:?}",
                    identity.schema,
                    identity.chain_id,
                    B256::from(identity.genesis_hash),
                    identity.first_block,
                    identity.static_rewards
                )
            }
            b"checkpoint" => {
                let checkpoint = Checkpoint::decode(value)?;
                let hash = format!("{:?}", checkpoint.hash);
                format!("{checkpoint:?}").replace(&hash, &B256::from(checkpoint.hash).to_string())
            }
            b"final" => format!("{:?}", Finality::decode(value)?),
            _ => match Summed::of(key, value).map_err(|_| Corrupt("sums of an array"))? {
                Some(Summed {
                    array,
                    records,
                    pages,
                    ..
                }) => format!(
                    "sums of {pages} pages of `{}.flat`, up to {records} records",
                    array.name()
                ),
                None => const_hex::encode_prefixed(value),
            },
        },
        Table::Blocks => format!("{:?}", decode_block(value)?),
        Table::Transactions | Table::LogsByBlock | Table::Frames => {
            let header = UnitReader::new(value, "unit")?.header();
            format!(
                "block {}, rows {} to {}",
                header.block,
                header.first_index,
                header.first_index + header.count - 1
            )
        }
        Table::LogsByEmitter => format!("{:?}", RunReader::new(value)?.header()),
        Table::Postings | Table::OpenPostings => {
            let mut all = Vec::new();
            let header = posting::decode(value, &mut all)?;
            let more = if all.len() > SHOWN_MAX { " ..." } else { "" };
            let shown: Vec<String> = all.iter().take(SHOWN_MAX).map(u64::to_string).collect();
            format!(
                "{} before, then {}: {}{more}",
                header.rank,
                all.len(),
                shown.join(" ")
            )
        }
        Table::Hashes => {
            let mut reader = Reader::new(value, "hash row");
            let mut numbers = Vec::new();
            while !reader.rest().is_empty() {
                numbers.push(reader.varint()?.to_string());
            }
            numbers.join(" ")
        }
        Table::Emitters | Table::Signatures | Table::Tokens => id()?.to_string(),
        Table::Creations => {
            let creation = Creation::decode(value)?;
            match creation.factory {
                Some(factory) => format!("by {} (frame {:?})", Address::from(factory), creation.frame),
                None => "by the transaction itself".to_owned(),
            }
        }
        Table::Nonces => match Reader::new(value, "nonce").varint()? {
            NONCE_UNKNOWN => "only the node can tell it".to_owned(),
            nonce => nonce.to_string(),
        },
        Table::Accounts => format!("{:?}", AccountRow::decode(value)?),
        Table::Holdings if key == tokens::unmoved(&tokens::decode_holding(key)?) => {
            let kind = tokens::read_unmoved(value)?;
            format!("holdings of this {kind:?} token stand under no standard")
        }
        Table::Balances | Table::TokenBalances | Table::Holdings => read_amount(value)?.to_string(),
        Table::Funding => format!("{:?}", FundingRow::decode(value)?),
        Table::Supply => format!("{:?}", SupplyRow::decode(value)?),
        Table::TokenStates => format!("{:?}", TokenState::decode(value)?),
        Table::TokenSupply => {
            let (minted, to_zero) = read_supply(&mut Reader::new(value, "token supply"))?;
            format!("minted {minted}, to the zero address {to_zero}")
        }
        Table::Holders | Table::NftIds => return Ok(Vec::new()),
        Table::NftOwners => Address::try_from(value)
            .map_err(|_| Corrupt("owner"))?
            .to_string(),
        Table::HolderCounts => Reader::new(value, "holder count").varint()?.to_string(),
        Table::Days => match keys::decode_day(key)? {
            (keys::DayKind::NewAddresses, _) => decode_new_addresses(value)?.to_string(),
            _ => format!("{:?}", DayRow::decode(value)?),
        },
        Table::Tail => format!(
            "{} bytes of arrays",
            Tail::decode(value)?.arrays.iter().map(Vec::len).sum::<usize>()
        ),
        Table::Undo => format!("{} rows as they were before", Undo::decode(value)?.rows.len()),
    };
    Ok(vec![line])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TokenKind;

    #[test]
    fn a_holding_of_the_zero_address_says_that_a_token_is_unmoved() {
        let token = Address::repeat_byte(9);
        let read = |key: &[u8], value: &[u8]| decoded(Table::Holdings, key, value);
        assert_eq!(
            read(&tokens::unmoved(&token), &[TokenKind::Erc1155 as u8]),
            Ok(vec![
                "holdings of this Erc1155 token stand under no standard".to_owned()
            ])
        );
        // No kind has this code.
        assert!(read(&tokens::unmoved(&token), &[9]).is_err());
        let held = tokens::holding(&Address::repeat_byte(7), TokenKind::Unknown, &token);
        assert_eq!(read(&held, &[3]), Ok(vec!["3".to_owned()]));
    }

    #[test]
    fn keys_are_written_in_parts() {
        let read = |table: Table, written: &str| read_key(table.describe().key, written);
        let five = keys::number(5).to_vec();
        assert_eq!(read(Table::Blocks, "5"), Ok(five.clone()));
        assert_eq!(read(Table::Blocks, "0x0000000000000005"), Ok(five));
        assert_eq!(read(Table::Meta, "checkpoint"), Ok(b"checkpoint".to_vec()));
        let account = Address::repeat_byte(7);
        let written = format!("{account:?}/9");
        assert_eq!(
            read(Table::Balances, &written),
            Ok(keys::account_at(&account, 9).to_vec())
        );
        assert_eq!(
            read(Table::LogsByEmitter, "3/open"),
            Ok(keys::emitter_run(3, u64::MAX).to_vec())
        );
        let term = keys::Term::log_address(2);
        let kind = format!("{}/0x00000002/open", term.kind() as u8);
        assert_eq!(read(Table::Postings, &kind), Ok(term.key(keys::OPEN)));
        let kind = format!("{}/0x00000002", term.kind() as u8);
        assert_eq!(read(Table::OpenPostings, &kind), Ok(term.piece_key()));
        assert_eq!(
            read(Table::Days, "1/19000"),
            Ok(keys::day(keys::DayKind::NewAddresses, 19_000).to_vec())
        );
        assert!(read(Table::Blocks, "five").unwrap_err().contains("nor a number"));
        assert!(
            read(Table::TokenStates, "4294967296")
                .unwrap_err()
                .contains("does not fit 4 bytes")
        );
        assert!(read(Table::Emitters, "xyz").unwrap_err().contains("is not hex"));
    }
}
