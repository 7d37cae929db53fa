//! Places of rows as text.

use super::RowCursor;

#[test]
fn places_of_rows_read_back_and_have_one_length() {
    let text = format!("{:016x}0123456789abcdef", 0x1234);
    let cursor: RowCursor = text.parse().unwrap();
    assert_eq!((cursor.ordinal, cursor.to_string()), (0x1234, text.clone()));
    // A prefix is no part of it, neither before it nor in place of two of its digits.
    let prefixed = text.replacen("00", "0x", 1);
    for wrong in [
        "",
        "1234",
        &prefixed,
        &format!("0x{text}"),
        &text.replace('f', "g"),
    ] {
        assert!(wrong.parse::<RowCursor>().is_err(), "{wrong}");
    }
}
