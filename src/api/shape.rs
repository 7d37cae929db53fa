//! The shape of answers as data: what `/openapi.json`, `/docs` and `docs/API.md` say of a body, and what tests
//! hold every example against.

/// The form of a value.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Text without a stricter form.
    Text,
    /// Digits: an amount, gas, a nonce, a number of a block or a time inside a list item.
    Decimal,
    /// Digits, or with `unit=coin` the exact fraction.
    Amount,
    /// `0x` and 40 lower-case hex digits.
    Address,
    /// `0x` and 64 lower-case hex digits.
    Hash,
    /// `0x` and pairs of lower-case hex digits.
    Hex,
    /// A JSON-RPC quantity.
    Quantity,
    /// `yyyy-MM-dd`.
    Date,
    /// A JSON integer.
    Integer,
    /// A JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A version 5 UUID.
    Uuid,
    /// An object with these fields.
    Object(&'static [Field]),
    /// An array of objects with these fields, which the answer is for: `application/x-ndjson` gives them one a line.
    List(&'static [Field]),
    /// An array of objects with these fields, in an answer that says more than they do.
    Array(&'static [Field]),
    /// An object with one of these for each configured chain.
    Chains(&'static [Field]),
    /// An object of texts, by whatever names.
    Texts,
    /// What the method of the same name answers (Ethereum JSON-RPC specification).
    JsonRpc,
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The form of its value.
    pub form: Form,
    /// Whether it may be `null`.
    pub nullable: bool,
    /// What it says.
    pub doc: &'static str,
}

impl Field {
    /// A field that is never `null`.
    #[must_use]
    pub const fn new(name: &'static str, form: Form, doc: &'static str) -> Self {
        Self {
            name,
            form,
            nullable: false,
            doc,
        }
    }

    /// The same, or `null`.
    #[must_use]
    pub const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }
}
