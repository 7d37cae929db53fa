//! Bodies of daily series, and of the supply of the native coin (answers.md sections 6, 8 and 9).

use super::{CHAIN, SORT, field};
use crate::api::shape::{Field, Form};

const START_DATE: Field = field("startDate", Form::Date, "The first day asked for.");
const END_DATE: Field = field("endDate", Form::Date, "The last day asked for.");
const DATE: Field = field("date", Form::Date, "The day (UTC).");
const UNIX: Field = field("unixTimeStamp", Form::Integer, "Its first second, Unix time.");

/// The envelope of a series whose days have these fields.
macro_rules! series {
    ($(#[$doc:meta])* $name:ident: $($field:expr),+ $(,)?) => {
        $(#[$doc])*
        pub(in crate::api) const $name: &[Field] = &[
            START_DATE,
            END_DATE,
            CHAIN,
            SORT,
            field("data", Form::List(&[DATE, UNIX, $($field),+]), "The days that the chain covers."),
        ];
    };
}

/// S1.
pub(in crate::api) const COIN_SUPPLY: &[Field] = &[
    field(
        "totalSupply",
        Form::Number,
        "Genesis, rewards and withdrawals, less what was burnt or destroyed.",
    ),
    field(
        "circulatingSupply",
        Form::Number,
        "The same without what the accounts hold that the operator lists.",
    ),
    CHAIN,
];

series!(
    /// S4.
    DAILY_TRANSACTIONS: field("transactionCount", Form::Integer, "Transactions.")
);
series!(
    /// S5.
    DAILY_NEW_ADDRESSES: field(
        "newAddressCount",
        Form::Integer,
        "Addresses that took part for the first time.",
    )
);
series!(
    /// S6.
    DAILY_FEES:
    field("transactionFee_Coin", Form::Text, "What senders paid, blob fees included."),
    field("burntFee_Coin", Form::Text, "Base and blob fees burnt."),
);
series!(
    /// S7.
    DAILY_UTILIZATION: field(
        "networkUtilization",
        Form::Text,
        "Percent, 2 decimals; `null` on a day without blocks.",
    )
    .or_null()
);
series!(
    /// B4.
    DAILY_SIZE: field(
        "blockSize_Bytes",
        Form::Integer,
        "Mean size; `null` on a day without blocks.",
    )
    .or_null()
);
series!(
    /// B5.
    DAILY_BLOCKS:
    field("blockCount", Form::Integer, "Blocks."),
    field("blockRewards_Coin", Form::Text, "Static rewards, uncle inclusion and tips."),
);
series!(
    /// B6.
    DAILY_REWARDS: field(
        "blockRewards_Coin",
        Form::Text,
        "Static rewards, uncle inclusion and rewards of uncles.",
    )
);
series!(
    /// B7.
    DAILY_BLOCK_TIME: field(
        "blockTime_Sec",
        Form::Text,
        "Seconds, 2 decimals, since the last block of the day before; `null` over nothing.",
    )
    .or_null()
);
series!(
    /// G1.
    DAILY_GAS_PRICE: field(
        "avgGasPrice_Gwei",
        Form::Text,
        "Mean effective gas price; `null` on a day without transactions.",
    )
    .or_null()
);
series!(
    /// G2, G3.
    DAILY_GAS:
    field("gasUsed", Form::Decimal, "Gas used."),
    field("gasLimit", Form::Decimal, "Mean gas limit of its blocks; `null` without any.").or_null(),
);
series!(
    /// S3.
    DAILY_PRICES:
    field(
        "nativeCoinPrice_USD",
        Form::Text,
        "The last price known at the day's end, exact; `null` before the first.",
    )
    .or_null(),
    field("stableCoinPrice_USD", Form::Text, "The same of the stable coin.").or_null(),
);
