//! Times as Go reads them, and what it says of others. Counterpart: `time.Parse` with the layouts of `metav1.Time`.

use jiff::Timestamp;

/// A layout: what Go calls it, how a time is written in it, and whether it has microseconds.
pub(super) struct Layout {
    go: &'static str,
    format: &'static str,
    micro: bool,
}

pub(super) const SECONDS: Layout =
    Layout { go: "2006-01-02T15:04:05Z07:00", format: "%Y-%m-%dT%H:%M:%SZ", micro: false };
pub(super) const MICROSECONDS: Layout =
    Layout { go: "2006-01-02T15:04:05.000000Z07:00", format: "%Y-%m-%dT%H:%M:%S.%6fZ", micro: true };

/// The parts of a layout up to the seconds. Digits stand for as many digits.
const PARTS: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];

/// A time in UTC, as it is written; or what is wrong with it.
pub(super) fn read(text: &str, layout: &Layout) -> Result<String, String> {
    let unparsed = |rest: &str, part: &str| {
        Err(format!("parsing time {text:?} as {:?}: cannot parse {rest:?} as {part:?}", layout.go))
    };
    let mut rest = text;
    for part in PARTS {
        let is_number = part.starts_with(|c: char| c.is_ascii_digit());
        let fits = match is_number {
            true => rest.len() >= part.len() && rest.bytes().take(part.len()).all(|byte| byte.is_ascii_digit()),
            false => rest.starts_with(part),
        };
        if !fits {
            return unparsed(rest, part);
        }
        rest = &rest[part.len()..];
    }
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match layout.micro {
        true if digits < 6 => return unparsed(rest, ".000000"),
        true => rest = &rest[7..],
        false if digits > 0 => rest = &rest[digits + 1..],
        false => {}
    }
    let bytes = rest.as_bytes();
    let is_offset = bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':';
    if rest != "Z" && !is_offset {
        return unparsed(rest, "Z07:00");
    }
    match text.parse::<Timestamp>() {
        Ok(time) => Ok(time.strftime(layout.format).to_string()),
        Err(_) => Err(format!("parsing time {text:?}: {} out of range", out_of_range(text))),
    }
}

/// Which part of a time that looks like one is too large.
fn out_of_range(text: &str) -> &'static str {
    let part = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse().ok()).unwrap_or(0);
    match (part(5, 7), part(11, 13), part(14, 16), part(17, 19)) {
        (0 | 13.., _, _, _) => "month",
        (_, 24.., _, _) => "hour",
        (_, _, 60.., _) => "minute",
        (_, _, _, 60..) => "second",
        _ => "day",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        let micro = |text: &str| read(text, &MICROSECONDS);
        let seconds = |text: &str| read(text, &SECONDS);
        assert_eq!(seconds("2026-01-02T03:04:05.9+02:00").as_deref(), Ok("2026-01-02T01:04:05Z"));
        assert_eq!(micro("2026-01-02T03:04:05.123456Z").as_deref(), Ok("2026-01-02T03:04:05.123456Z"));
        let wrong = |text: &str, layout: &Layout, rest: &str, part: &str| {
            let text = format!("parsing time {text:?} as {:?}: cannot parse {rest:?} as {part:?}", layout.go);
            Err::<String, _>(text)
        };
        for (text, rest, part) in
            [("xx", "xx", "2006"), ("", "", "2006"), ("2026-01-02", "", "T"), ("2026-01-02T03:04", "", ":")]
        {
            assert_eq!(seconds(text), wrong(text, &SECONDS, rest, part));
        }
        let cases = [
            ("2026-01-02T03:04:05Z", "Z", ".000000"),
            ("2026-01-02T03:04:05.6Z", ".6Z", ".000000"),
            ("2026-01-02T03:04:05.1234567Z", "7Z", "Z07:00"),
        ];
        for (text, rest, part) in cases {
            assert_eq!(micro(text), wrong(text, &MICROSECONDS, rest, part));
        }
        assert_eq!(
            seconds("2026-13-02T03:04:05Z"),
            Err("parsing time \"2026-13-02T03:04:05Z\": month out of range".to_owned())
        );
        // Letters of more than one byte are no place to cut at.
        for hostile in ["é026-01-02T03:04:05Z", "2026-01-02T03:04:05é", "2026-01-02T03:04:05.é", "２０２６"] {
            assert!(seconds(hostile).is_err() && micro(hostile).is_err(), "{hostile}");
        }
    }
}
