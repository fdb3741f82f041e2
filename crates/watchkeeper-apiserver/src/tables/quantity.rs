//! Amounts as a kube-apiserver writes them: `1Gi` and not `1024Mi`, `1500m` and not `1.5`.
//!
//! Counterpart: `Quantity` in `k8s.io/apimachinery/pkg/api/resource`.

use serde_json::Value;

/// What follows a number, and which power of ten or two it is.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The smallest power of ten that is kept; what is less is rounded up to it.
const NANO: i32 = -9;
/// What Go's numbers hold in any case.
const SAFE_DIGITS: usize = 18;
/// More digits are not worth the work: such amounts stay as they are.
const MOST_DIGITS: usize = 30;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// The amount in its usual form. What is missing is 0, and what is no amount stays as it is.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => canonical(text.trim()).unwrap_or_else(|| text.clone()),
        Some(Value::Number(number)) => {
            let text = number.to_string();
            canonical(&text).unwrap_or(text)
        }
        _ => "0".to_owned(),
    }
}

/// What is said of a text that is no amount.
pub(crate) const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The amount that a text says, in its usual form; or what is wrong with it.
pub(crate) fn parsed(text: &str) -> Result<String, &'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = unsigned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let value = &unsigned[..unsigned.len() - number.len()];
    let suffix = number.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let suffix = suffix.strip_prefix(['+', '-']).unwrap_or(suffix);
    if !value.contains(|c: char| c.is_ascii_digit())
        || value.matches('.').count() > 1
        || !suffix.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(WRONG_FORMAT);
    }
    match canonical(text) {
        Some(text) => Ok(text),
        None if meaning(number).is_none() => Err("unable to parse quantity's suffix"),
        // It has more digits than are worth the work.
        None => Ok(text.to_owned()),
    }
}

/// The amount that a text says, to be compared with others.
pub(crate) fn amount(text: &str) -> Option<f64> {
    let (number, suffix) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let (format, exponent) = meaning(suffix)?;
    let base: f64 = if format == Format::Binary { 2.0 } else { 10.0 };
    Some(number.parse::<f64>().ok()? * base.powi(exponent))
}

fn canonical(text: &str) -> Option<String> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let unsigned = unsigned.trim_start_matches('0');
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    let (format, exponent) = meaning(suffix)?;
    let digits = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
    if digits.len() > MOST_DIGITS {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    let scale = if format == Format::Binary { 0 } else { exponent }.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if is_kept(format, value, &digits, fraction, exponent, scale) {
        return Some(text.to_owned());
    }
    let value = if format == Format::Binary { value.checked_mul(1 << exponent)? } else { value };
    let (value, scale) = rounded(value, scale);
    if value == 0 {
        return Some("0".to_owned());
    }
    let (number, suffix) = match format {
        Format::Binary => binary(value, scale)?,
        _ => decimal(value, scale, format)?,
    };
    Some(format!("{}{number}{suffix}", if negative { "-" } else { "" }))
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// What a suffix says: how the amount is to be written, and the exponent.
fn meaning(suffix: &str) -> Option<(Format, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, *exponent));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Binary, i32::try_from(*exponent).ok()?));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // No resource has more.
    (-100..=100).contains(&exponent).then_some((Format::Exponent, exponent))
}

/// Go keeps the text of an amount that looks usual to it at first sight, although some of these are not.
fn is_kept(format: Format, value: i128, digits: &str, fraction: &str, exponent: i32, scale: i32) -> bool {
    match format {
        Format::Binary => {
            let room = 14 - i32::try_from(digits.len()).unwrap_or(i32::MAX) - exponent * 3 / 10;
            fraction.is_empty() && room >= 0 && value & 7 != 0
        }
        _ => {
            digits.len() <= SAFE_DIGITS
                && scale >= NANO
                && scale % 3 == 0
                && !digits.ends_with("000")
                && !digits.starts_with('0')
        }
    }
}

/// Nothing below a nano: what is less is rounded up.
fn rounded(mut value: i128, mut scale: i32) -> (i128, i32) {
    let mut lost = false;
    while scale < NANO {
        lost |= value % 10 != 0;
        (value, scale) = (value / 10, scale + 1);
    }
    (value + i128::from(lost), scale)
}

/// A number whose exponent is a multiple of three.
fn decimal(mut value: i128, mut scale: i32, format: Format) -> Option<(i128, String)> {
    while value % 10 == 0 {
        (value, scale) = (value / 10, scale.checked_add(1)?);
    }
    while scale % 3 != 0 {
        (value, scale) = (value.checked_mul(10)?, scale - 1);
    }
    let suffix = match (format, scale) {
        (Format::Exponent, 0) => String::new(),
        (Format::Exponent, _) => format!("e{scale}"),
        // What has no name is written without one, as Go does.
        _ => DECIMAL
            .iter()
            .find(|(_, exponent)| *exponent == scale)
            .map(|(name, _)| *name)
            .unwrap_or_default()
            .to_owned(),
    };
    Some((value, suffix))
}

/// A number of bytes, or a decimal one where that would lose something.
fn binary(value: i128, scale: i32) -> Option<(i128, String)> {
    let unit = 10_i128.checked_pow(scale.unsigned_abs())?;
    if value < 1024 * unit || value % unit != 0 {
        return decimal(value, scale, Format::Decimal);
    }
    let (mut value, mut power) = ((value / unit).min(i128::from(i64::MAX)), 0);
    while value % 1024 == 0 {
        (value, power) = (value / 1024, power + 10);
    }
    let suffix = BINARY.iter().find(|(_, exponent)| *exponent == power).map(|(name, _)| *name).unwrap_or_default();
    Some((value, suffix.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_take_the_form_that_go_gives_them() {
        for (text, usual) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.0", "0"),
            ("1", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.500", "1.500"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1023Mi", "1023Mi"),
            ("8Gi", "8Gi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("1Ki", "1Ki"),
            ("1e3", "1e3"),
            ("1000e0", "1e3"),
            ("12E", "12E"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-5Gi", "-5Gi"),
            ("-1024Mi", "-1Gi"),
            ("16Ei", "9223372036854775807"),
            ("5 apples", "5 apples"),
            ("", ""),
            ("e99999999999999999999", "e99999999999999999999"),
        ] {
            assert_eq!(shown(Some(&json!(text))), usual, "{text}");
        }
        assert_eq!(shown(Some(&json!(3))), "3");
        assert_eq!(shown(Some(&json!(0.25))), "250m");
        assert_eq!(shown(None), "0");
    }
}
