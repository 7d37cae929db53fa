//! What the operator states of prices.

use std::fmt::Write as _;

use super::file::OneOrMany;
use super::{ConfigError, ConfigFile};
use crate::model::{Address, ChainName, StatedPrices, shown_text, written_address};

/// The longest symbol of a native coin.
const SYMBOL_CHARS_MAX: usize = 32;

/// What the file states of each chain.
pub(super) fn stated(file: &ConfigFile) -> Result<Vec<(ChainName, StatedPrices)>, ConfigError> {
    let names = [
        ("mainnet.symbol", "mainnet.prices.native", "mainnet.prices.stable"),
        ("testnet.symbol", "testnet.prices.native", "testnet.prices.stable"),
    ];
    ChainName::ALL
        .into_iter()
        .zip([&file.mainnet, &file.testnet])
        .zip(names)
        .map(|((chain, section), (symbol, native, stable))| {
            let prices = StatedPrices {
                symbol: section
                    .symbol
                    .as_deref()
                    .map(|text| read_symbol(symbol, text))
                    .transpose()?,
                native: addresses(native, section.prices.native.as_ref())?,
                stable: addresses(stable, section.prices.stable.as_ref())?,
            };
            Ok((chain, prices))
        })
        .filter(|stated| !matches!(stated, Ok((_, prices)) if *prices == StatedPrices::default()))
        .collect()
}

fn read_symbol(name: &'static str, text: &str) -> Result<String, ConfigError> {
    let text = text.trim();
    if text.is_empty() || shown_text(text.as_bytes(), SYMBOL_CHARS_MAX) != text {
        let reason = format!(
            "`{}` is not a symbol of 1 to {SYMBOL_CHARS_MAX} characters",
            text.escape_debug()
        );
        return Err(ConfigError::Value { name, reason });
    }
    Ok(text.to_owned())
}

fn addresses(name: &'static str, stated: Option<&OneOrMany>) -> Result<Option<Vec<Address>>, ConfigError> {
    let read = |text: &String| {
        written_address(text.trim()).map_err(|fault| ConfigError::Value {
            name,
            reason: format!("`{}` {fault}", text.escape_debug()),
        })
    };
    stated
        .map(|stated| stated.as_slice().iter().map(read).collect())
        .transpose()
}

/// Appends what a chain's section says of prices.
pub(super) fn write(out: &mut String, chain: ChainName, prices: &StatedPrices) {
    if let Some(symbol) = &prices.symbol {
        let _ = writeln!(out, "symbol = {}", toml::Value::String(symbol.clone()));
    }
    if prices.native.is_none() && prices.stable.is_none() {
        return;
    }
    let _ = writeln!(out, "\n[{chain}.prices]");
    for (name, feeds) in [("native", &prices.native), ("stable", &prices.stable)] {
        if let Some(feeds) = feeds {
            let feeds: Vec<String> = feeds
                .iter()
                .map(|feed| format!("\"{}\"", const_hex::encode_prefixed(feed)))
                .collect();
            let _ = writeln!(out, "{name} = [{}]", feeds.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: &str = "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419";

    fn read(text: &str) -> Result<StatedPrices, String> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let stated = stated(&file).map_err(|error| error.to_string())?;
        Ok(stated
            .into_iter()
            .next()
            .map(|(_, prices)| prices)
            .unwrap_or_default())
    }

    #[test]
    fn one_feed_or_many() {
        assert_eq!(read(""), Ok(StatedPrices::default()));
        let one = read(&format!(
            "[mainnet]\nsymbol = \"XDAI\"\n[mainnet.prices]\nnative = \"{FEED}\"\nstable = []"
        ))
        .unwrap();
        assert_eq!(one.native, Some(vec![FEED.parse().unwrap()]));
        assert_eq!(
            (one.stable.as_deref(), one.symbol.as_deref()),
            (Some([].as_slice()), Some("XDAI"))
        );
        let many = read(&format!("[mainnet.prices]\nstable = [\"{FEED}\", \"{FEED}\"]")).unwrap();
        assert_eq!(many.stable.map(|feeds| feeds.len()), Some(2));
        // What is printed is read as the same.
        let mut out = "[mainnet]\n".to_owned();
        write(&mut out, ChainName::Mainnet, &one);
        assert_eq!(read(&out), Ok(one));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            (
                "[mainnet.prices]\nnative = \"0x12\"",
                "mainnet.prices.native: `0x12` is not an address",
            ),
            (
                "[testnet.prices]\nstable = [\"x\"]",
                "testnet.prices.stable: `x` is not an address",
            ),
            (
                "[mainnet.prices]\nnative = \"0x5F4eC3Df9cbd43714FE2740f5E3616155c5b8419\"",
                "wrong checksum (EIP-55): with the right one it is 0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419",
            ),
            ("[mainnet]\nsymbol = \"\"", "mainnet.symbol: `` is not a symbol"),
            ("[mainnet]\nsymbol = \"a\\tb\"", "mainnet.symbol: `a\\tb` is not"),
            ("[mainnet.prices]\nnative = 5", "did not match"),
            ("[mainnet.prices]\ngold = \"x\"", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
