//! What the operator states of prices.

use super::file::OneOrMany;
use super::merge::Merge;
use super::{ChainFile, ConfigError};
use crate::model::{Address, ChainName, StatedPrices, shown_text, written_address};

/// The longest symbol of a native coin.
const SYMBOL_CHARS_MAX: usize = 32;

/// What a chain's section calls its coin.
pub(super) fn symbol(
    merge: &mut Merge<'_>,
    chain: ChainName,
    section: &ChainFile,
) -> Result<Option<String>, ConfigError> {
    merge.in_file(format!("{chain}.symbol"), section.symbol.clone(), read_symbol)
}

/// What a chain's section says of its prices.
pub(super) fn feeds(
    merge: &mut Merge<'_>,
    chain: ChainName,
    section: &ChainFile,
    symbol: Option<String>,
) -> Result<StatedPrices, ConfigError> {
    let (native, stable) = (section.prices.native.clone(), section.prices.stable.clone());
    Ok(StatedPrices {
        symbol,
        native: merge.in_file(format!("{chain}.prices.native"), native, addresses)?,
        stable: merge.in_file(format!("{chain}.prices.stable"), stable, addresses)?,
    })
}

fn read_symbol(text: String) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || shown_text(text.as_bytes(), SYMBOL_CHARS_MAX) != text {
        let shown = text.escape_debug();
        return Err(format!(
            "`{shown}` is not a symbol of 1 to {SYMBOL_CHARS_MAX} characters"
        ));
    }
    Ok(text.to_owned())
}

fn addresses(stated: OneOrMany) -> Result<Vec<Address>, String> {
    let read = |text: &String| {
        written_address(text.trim()).map_err(|fault| format!("`{}` {fault}", text.escape_debug()))
    };
    stated.as_slice().iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Given;
    use crate::config::ConfigFile;

    const FEED: &str = "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419";

    fn read(text: &str) -> Result<StatedPrices, String> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let given = Given::default();
        let mut merge = Merge::new(&given, None);
        let mut read = |chain, section| {
            let symbol = symbol(&mut merge, chain, section)?;
            feeds(&mut merge, chain, section, symbol)
        };
        read(ChainName::Testnet, &file.testnet).map_err(|error| error.to_string())?;
        read(ChainName::Mainnet, &file.mainnet).map_err(|error| error.to_string())
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
