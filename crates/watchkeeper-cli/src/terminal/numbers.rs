//! How are numbers written for people?

use std::time::Duration;

/// A count with its thousands apart: `12,431`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How long something took: `85 ms`, `3.2 s`, `4 min 05 s`, `2 h 07 min`.
pub(crate) fn seconds(duration: Duration) -> String {
    let tenths = (duration.as_millis() + 50) / 100;
    let whole = duration.as_secs();
    match whole {
        0 if tenths < 10 => format!("{} ms", duration.as_millis()),
        // Half of a tenth more is a minute already.
        0..60 if tenths < 600 => format!("{}.{} s", tenths / 10, tenths % 10),
        0..60 => "1 min 00 s".to_owned(),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", count(whole / 3600), whole / 60 % 60),
    }
}

/// A size in powers of a thousand: `812 B`, `1.4 MB`.
pub(crate) fn bytes(size: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if size < 1000 {
        return format!("{size} B");
    }
    let mut tenths = u128::from(size) * 10;
    let mut unit = "";
    for next in UNITS {
        // Rounded, it must not read `1000.0`.
        if tenths < 10_000 {
            break;
        }
        tenths = (tenths + 500) / 1000;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1204, 12_431, 1_000_000].map(count), ["0", "999", "1,204", "12,431", "1,000,000"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn durations_have_the_unit_that_is_read_best() {
        let of = |millis| seconds(Duration::from_millis(millis));
        assert_eq!([of(0), of(85), of(949), of(950), of(3_249)], ["0 ms", "85 ms", "949 ms", "1.0 s", "3.2 s"]);
        assert_eq!(
            [of(59_940), of(59_960), of(245_000), of(7_620_000)],
            ["59.9 s", "1 min 00 s", "4 min 05 s", "2 h 07 min"]
        );
    }

    #[test]
    fn sizes_never_read_as_a_thousand() {
        assert_eq!([0, 812, 1000, 1_449, 1_400_000].map(bytes), ["0 B", "812 B", "1.0 kB", "1.4 kB", "1.4 MB"]);
        assert_eq!([999_949, 999_990, u64::MAX].map(bytes), ["999.9 kB", "1.0 MB", "18.4 EB"]);
    }
}
