//! How much is `1500m`, `2Gi`, `1e3`?

/// A quantity in nanos, the smallest unit that there is. Larger ones than fit are the largest.
///
/// Kubernetes has decimal suffixes (`n`, `u`, `m`, `k`, `M`, ... `E`), binary ones (`Ki`, ... `Ei`) and exponents.
pub(super) fn parse(text: &str) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let number_end = text.find(|character: char| character != '.' && !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(number_end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let (factor, exponent) = unit(suffix)?;
    let nanos = scaled(whole, fraction, factor, exponent.saturating_add(9));
    Some(if negative { nanos.saturating_neg() } else { nanos })
}

/// The factor and the power of ten of a suffix.
fn unit(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 0));
    match suffix {
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "" => Some((1, 0)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => Some((1, suffix.strip_prefix(['e', 'E'])?.parse().ok()?)),
    }
}

/// `whole.fraction * factor * 10^exponent`, rounded up as Kubernetes rounds, and never more than fits.
fn scaled(whole: &str, fraction: &str, factor: i128, exponent: i32) -> i128 {
    let digits = whole.bytes().chain(fraction.bytes()).map(|digit| i128::from(digit - b'0'));
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let mut value: i128 = 0;
    for digit in digits {
        match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
            Some(next) => value = next,
            None => return i128::MAX,
        }
    }
    let Some(value) = value.checked_mul(factor) else { return i128::MAX };
    let exponent = exponent.saturating_sub(places);
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    match (exponent >= 0, power) {
        (_, _) if value == 0 => 0,
        (true, power) => power.and_then(|power| value.checked_mul(power)).unwrap_or(i128::MAX),
        (false, Some(power)) => value / power + i128::from(value % power != 0),
        (false, None) => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn suffixes_and_exponents_say_how_much() {
        let unit = 1_000_000_000;
        let cases: [(&str, i128); 10] = [
            ("1", unit),
            ("1500m", unit * 3 / 2),
            ("2Gi", unit * (2 << 30)),
            ("0.5Ki", unit * 512),
            ("1e3", unit * 1000),
            ("1E", unit * 1_000_000_000_000_000_000),
            ("1E2", unit * 100),
            ("-3k", -unit * 3000),
            (".5", unit / 2),
            ("0.1n", 1),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in ["", "-", ".", "web", "1.2.3", "1x", "1 Gi", "Gi", "1ki", "1e", "2026-11-16T06:50:12Z"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), number in r"[+-]?[0-9.]{0,60}(e[+-]?[0-9]{1,12}|[EPKMi]{0,2})") {
            parse(&text);
            parse(&number);
        }
    }
}
