//! Durations as people write them.

use std::time::Duration;

/// `10s`, `2m`, `1m30s`, `500ms`, `1h`; kubectl's and Go's way. A number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write for example 10s, 2m, 1m30s or 500ms");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let factor = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * factor).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kubectl_reads_them() {
        for (text, millis) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5s", 1500),
            ("2h", 7_200_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_said_so() {
        for text in ["", "s", "10x", "-5s", "1e9s", "ten", "10 s", "9999999999999999999999h", "1..2s", "5s5"] {
            assert!(duration(text).is_err_and(|error| error.contains("is no duration")), "{text}");
        }
    }
}
