//! What a transaction paid, without the rest of its row.

use serde_json::value::RawValue;

use crate::model::{Header, Receipt, Transaction, U256, blob_base_fee};

/// What of a transaction and its receipt says who was paid for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeeRow {
    /// Gas used.
    pub gas_used: u64,
    /// Price paid per gas as the receipt states it, wei.
    pub effective_gas_price: Option<u128>,
    /// `gasPrice` of the transaction, wei.
    pub gas_price: Option<u128>,
    /// `maxFeePerGas`, wei.
    pub max_fee_per_gas: Option<u128>,
    /// `maxPriorityFeePerGas`, wei.
    pub max_priority_fee_per_gas: Option<u128>,
    /// Blob gas used, by the receipt; else by the number of blobs (EIP-4844).
    pub blob_gas_used: u64,
    /// Price paid per blob gas as the receipt states it, wei.
    pub blob_gas_price: Option<u128>,
    /// Paid to the layer below and to the operator (L1 fee and operator fee of roll-ups) besides gas, wei.
    pub below: U256,
    /// Paid in a token ([`Transaction::is_paid_in_token`]): the prices are in it, and of the chain's coin nothing was paid.
    pub in_token: bool,
}

/// Gas of a blob (EIP-4844).
const GAS_PER_BLOB: u64 = 1 << 17;

/// Blob gas used: what the receipt states, else by the number of blobs (EIP-4844).
#[must_use]
pub fn blob_gas_used(stated: Option<u64>, blobs: usize) -> u64 {
    stated.unwrap_or((blobs as u64).saturating_mul(GAS_PER_BLOB))
}

impl FeeRow {
    /// Of a transaction and its receipt.
    #[must_use]
    pub fn new(transaction: &Transaction, receipt: &Receipt) -> Self {
        let blobs = transaction.blob_versioned_hashes.as_ref().map_or(0, Vec::len);
        let row = Self {
            gas_used: receipt.gas_used,
            effective_gas_price: receipt.effective_gas_price,
            gas_price: transaction.gas_price,
            max_fee_per_gas: transaction.max_fee_per_gas,
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas,
            blob_gas_used: blob_gas_used(receipt.blob_gas_used, blobs),
            blob_gas_price: receipt.blob_gas_price,
            ..Self::default()
        };
        row.with_extras(
            transaction.kind,
            transaction.extra.as_deref(),
            receipt.extra.as_deref(),
        )
    }

    /// The same with what those fields of the transaction, which is of this type, and of its receipt say that Ethereum's do not
    /// have.
    pub(in crate::codec) fn with_extras(
        self,
        kind: u8,
        extra: Option<&str>,
        receipt_extra: Option<&str>,
    ) -> Self {
        let in_token = Transaction::is_paid_in_token(extra);
        let below = paid_below(receipt_extra, kind, self.gas_used);
        Self {
            below: if in_token { U256::ZERO } else { below },
            in_token,
            ..self
        }
    }

    /// What was paid per gas: the receipt's word, else EIP-1559's rule, else the transaction's price. In a token where it was paid
    /// in one.
    #[must_use]
    pub fn price(&self, base_fee: Option<u64>) -> u128 {
        let by_rule = || {
            // The block's is in coin.
            let base_fee = u128::from(base_fee.filter(|_| !self.in_token)?);
            let tip = self.max_priority_fee_per_gas?;
            Some(self.max_fee_per_gas?.min(base_fee.saturating_add(tip)))
        };
        self.effective_gas_price
            .or_else(by_rule)
            .or(self.gas_price)
            .unwrap_or(0)
    }

    /// What was paid above the base fee, wei. A price below the base fee is that of a roll-up's deposit: it
    /// neither tips nor burns.
    fn tip(&self, base_fee: Option<u64>) -> u128 {
        let above = self
            .price(base_fee)
            .saturating_sub(u128::from(base_fee.unwrap_or(0)));
        u128::from(self.gas_used).saturating_mul(above)
    }
}

/// What a receipt says was paid to the layer below, and to the operator of a roll-up, besides gas: `l1Fee` of OP Stack chains and
/// Scroll, and the operator's fee by the parameters that OP Stack receipts state from Isthmus on. Deposits pay neither. Mantle's
/// receipts (`tokenRatio`) state an `l1Fee` that is part of the gas used before Arsia, which brought Jovian's fields.
fn paid_below(extra: Option<&str>, kind: u8, gas_used: u64) -> U256 {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Extra<'a> {
        #[serde(borrow)]
        l1_fee: Option<&'a RawValue>,
        #[serde(borrow)]
        operator_fee_scalar: Option<&'a RawValue>,
        #[serde(borrow)]
        operator_fee_constant: Option<&'a RawValue>,
        #[serde(borrow)]
        da_footprint_gas_scalar: Option<&'a RawValue>,
        #[serde(borrow)]
        token_ratio: Option<&'a RawValue>,
    }
    let Some(extra) = extra.and_then(|extra| serde_json::from_str::<Extra<'_>>(extra).ok()) else {
        return U256::ZERO;
    };
    let amount = |field: Option<&RawValue>| field.and_then(|field| quantity(field.get())).unwrap_or_default();
    let is_in_gas = extra.token_ratio.is_some() && extra.da_footprint_gas_scalar.is_none();
    let below = amount(extra.l1_fee.filter(|_| !is_in_gas));
    if kind == DEPOSIT {
        return below;
    }
    let scaled = U256::from(gas_used).saturating_mul(amount(extra.operator_fee_scalar));
    // Jovian, which states the footprint of the data, charges a hundred times the product, Isthmus a millionth of it.
    let scaled = match extra.da_footprint_gas_scalar {
        Some(_) => scaled.saturating_mul(U256::from(100)),
        None => scaled / U256::from(1_000_000),
    };
    below
        .saturating_add(scaled)
        .saturating_add(amount(extra.operator_fee_constant))
}

/// The type of deposits on OP Stack chains.
const DEPOSIT: u8 = 0x7e;

/// An amount as a node states it: hexadecimal, or a JSON number.
fn quantity(raw: &str) -> Option<U256> {
    let (digits, radix) = match raw.strip_prefix("\"0x") {
        Some(digits) => (digits.strip_suffix('"')?, 16),
        None => (raw, 10),
    };
    let digits = Some(digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    U256::from_str_radix(digits, radix).ok()
}

/// The price of blob gas in a block by its header, wei, where it has one.
#[must_use]
pub fn blob_price(header: &Header) -> Option<U256> {
    let excess = header.excess_blob_gas?;
    Some(blob_base_fee(excess, header.requests_hash.is_some()))
}

/// What a transaction paid, by what became of it, wei. Nothing where it was paid in a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// Per gas.
    pub price: u128,
    /// Above the base fee, to the block's fee recipient.
    pub tip: u128,
    /// The base fee, burnt (EIP-1559).
    pub base_fee_burnt: U256,
    /// The blob fee, burnt (EIP-4844).
    pub blob_fee_burnt: U256,
}

/// Takes apart what the transactions of one block paid.
#[derive(Clone, Debug)]
pub struct BlockFees<'h> {
    header: &'h Header,
    /// One price for the whole block: by the header, where a receipt does not state it.
    blob_price: Option<U256>,
}

impl<'h> BlockFees<'h> {
    /// Of the block with this header.
    #[must_use]
    pub const fn of(header: &'h Header) -> Self {
        Self {
            header,
            blob_price: None,
        }
    }

    /// What a transaction of the block paid. A price below the base fee is that of a roll-up's deposit.
    pub fn split(&mut self, fee: &FeeRow) -> Paid {
        if fee.in_token {
            return Paid::default();
        }
        let base_fee = self.header.base_fee_per_gas;
        let price = fee.price(base_fee);
        let burnt = price.min(u128::from(base_fee.unwrap_or(0)));
        let product = |gas: u64, price: U256| U256::from(gas).saturating_mul(price);
        let blob_fee_burnt = match (fee.blob_gas_used, fee.blob_gas_price) {
            (0, _) => U256::ZERO,
            (gas, Some(price)) => product(gas, U256::from(price)),
            (gas, None) => {
                let by_header = || blob_price(self.header).unwrap_or_default();
                product(gas, *self.blob_price.get_or_insert_with(by_header))
            }
        };
        Paid {
            price,
            tip: fee.tip(base_fee),
            base_fee_burnt: product(fee.gas_used, U256::from(burnt)),
            blob_fee_burnt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_of_the_layer_below() {
        let of = |extra: &str| paid_below(Some(extra), 2, 21_000).to_string();
        assert_eq!(
            of(r#"{"l1GasUsed":"0x1","l1Fee":"0x1f","l1FeeScalar":"0.5"}"#),
            "31"
        );
        assert_eq!(of(r#"{"l1Fee":31}"#), "31");
        assert_eq!(of(r#"{"l1Fee":36893488147419103232}"#), "36893488147419103232");
        for without in [
            "",
            "{}",
            r#"{"l1Fee":null}"#,
            r#"{"l1Fee":"31"}"#,
            r#"{"l1Fee":"0xzz"}"#,
            r#"{"l1Fee":"0x"}"#,
            r#"{"l1Fee":1.5}"#,
            r#"{"l1Fee":-1}"#,
        ] {
            assert_eq!(of(without), "0", "{without}");
        }
        assert_eq!(paid_below(None, 2, 21_000), U256::ZERO);
    }

    #[test]
    fn fees_of_a_roll_ups_operator() {
        let extra = r#"{"l1Fee":"0x3e8","operatorFeeScalar":"0x16e361","operatorFeeConstant":"0x1f4"}"#;
        // 21,000 * 1,500,001 / 10^6, rounded down.
        let isthmus = paid_below(Some(extra), 2, 21_000);
        assert_eq!(isthmus, U256::from(1000 + 31_500 + 500));
        assert_eq!(paid_below(Some(extra), DEPOSIT, 21_000), U256::from(1000));
        let jovian =
            r#"{"operatorFeeScalar":"0x2","operatorFeeConstant":"0x1f4","daFootprintGasScalar":"0x190"}"#;
        assert_eq!(
            paid_below(Some(jovian), 2, 21_000),
            U256::from(21_000 * 200 + 500)
        );
        assert_eq!(
            paid_below(Some(r#"{"operatorFeeConstant":500}"#), 2, 1),
            U256::from(500)
        );
    }

    /// Before its Arsia upgrade Mantle takes the fee of the layer below out of the gas.
    #[test]
    fn a_fee_that_is_part_of_the_gas_is_not_paid_besides() {
        let mantle = r#"{"l1Fee":"0x3e8","l1FeeScalar":"0.5","l1GasPrice":"0x1","l1GasUsed":"0x1","tokenRatio":"0xf73"}"#;
        assert_eq!(paid_below(Some(mantle), 2, 21_000), U256::ZERO);
        let arsia = r#"{"l1Fee":"0x3e8","tokenRatio":"0xf73","daFootprintGasScalar":"0x0"}"#;
        assert_eq!(paid_below(Some(arsia), 2, 21_000), U256::from(1000));
        let operated = r#"{"l1Fee":"0x3e8","tokenRatio":"0xf73","daFootprintGasScalar":"0x94",
            "operatorFeeScalar":"0x2","operatorFeeConstant":"0x1f4"}"#;
        assert_eq!(
            paid_below(Some(operated), 2, 21_000),
            U256::from(1000 + 21_000 * 200 + 500)
        );
    }

    fn header() -> Header {
        Header {
            base_fee_per_gas: Some(100),
            excess_blob_gas: Some(0),
            ..Header::default()
        }
    }

    fn receipt(price: u128, extra: &str) -> Receipt {
        Receipt {
            gas_used: 21_000,
            effective_gas_price: Some(price),
            extra: Some(extra.to_owned()),
            ..Receipt::default()
        }
    }

    /// A transaction of Celo (CIP-64) states prices in the token that it names.
    #[test]
    fn what_is_paid_in_a_token_is_no_coin() {
        let of = |kind, extra: &str| {
            let transaction = Transaction {
                kind,
                max_fee_per_gas: Some(9_000),
                max_priority_fee_per_gas: Some(7),
                extra: Some(extra.to_owned()),
                ..Transaction::default()
            };
            FeeRow::new(
                &transaction,
                &receipt(8_000, r#"{"baseFee":"0x1f3b","l1Fee":"0x5"}"#),
            )
        };
        let currency = r#"{"feeCurrency":"0x0e2a3e05bc9a16f5292a6170456a710cb89c6f72"}"#;
        // CIP-64, CIP-42, and the oldest form, which has no type of its own.
        for kind in [0x7b, 0x7c, 0] {
            let fee = of(kind, currency);
            assert_eq!((fee.in_token, fee.below), (true, U256::ZERO));
            assert_eq!(BlockFees::of(&header()).split(&fee), Paid::default());
            assert_eq!(fee.price(Some(100)), 8_000);
            let unstated = FeeRow {
                effective_gas_price: None,
                gas_price: Some(8_001),
                ..fee
            };
            assert_eq!(unstated.price(Some(100)), 8_001);
        }
        for without in [r#"{"feeCurrency":null}"#, "{}", ""] {
            let fee = of(0x7b, without);
            assert_eq!((fee.in_token, fee.below), (false, U256::from(5)));
            let paid = BlockFees::of(&header()).split(&fee);
            assert_eq!((paid.price, paid.tip), (8_000, 21_000 * 7_900));
            assert_eq!(paid.base_fee_burnt, U256::from(21_000 * 100));
        }
    }
}
