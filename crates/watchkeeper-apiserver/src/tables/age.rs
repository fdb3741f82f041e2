//! How long ago was it? Counterpart: `HumanDuration` in `k8s.io/apimachinery/pkg/util/duration`.

use jiff::{SignedDuration, Timestamp};

/// What stands for a time that nobody knows.
pub(super) const UNKNOWN: &str = "<unknown>";

/// The time since a moment, as a person says it: `5m20s`, `3d4h`, `2y`. What is no time, or Go's zero time, is unknown.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
    time.and_then(moment).map_or_else(|| UNKNOWN.to_owned(), |time| human(now.duration_since(time)))
}

/// A moment; none, if the text is none, or Go's zero time.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok().filter(|time| *time != zero())
}

/// Whether a text is a time at all.
pub(super) fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
}

/// The moment as the text of its second, in UTC. What is no moment is Go's zero time.
pub(super) fn seconds(text: Option<&str>) -> String {
    let time = text.and_then(moment).unwrap_or_else(zero);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Two or three digits of a duration.
pub(super) fn human(duration: SignedDuration) -> String {
    // Go's durations are numbers of nanoseconds, and end at 292 years.
    let longest = SignedDuration::from_nanos(i64::MAX);
    let seconds = duration.clamp(-longest, longest).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        // Clocks may differ by a second.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => with_rest(minutes, "m", seconds % 60, "s"),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => with_rest(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => with_rest(days, "d", hours % 24, "h"),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => with_rest(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// `5m20s`, or `5m` without a rest.
fn with_rest(whole: i64, unit: &str, rest: i64, smaller: &str) -> String {
    match rest {
        0 => format!("{whole}{unit}"),
        _ => format!("{whole}{unit}{rest}{smaller}"),
    }
}

/// What Go's times are before somebody sets them.
fn zero() -> Timestamp {
    Timestamp::constant(-62_135_596_800, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_as_kubectl_does() {
        let (minute, hour, day) = (60, 3600, 86_400);
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (2 * minute + 1, "2m1s"),
            (9 * minute + 59, "9m59s"),
            (10 * minute + 59, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 59 * minute, "7h59m"),
            (8 * hour + 59 * minute, "8h"),
            (47 * hour, "47h"),
            (48 * hour, "2d"),
            (2 * day + hour, "2d1h"),
            (8 * day - 1, "7d23h"),
            (8 * day, "8d"),
            (730 * day - 1, "729d"),
            (730 * day, "2y"),
            (731 * day, "2y1d"),
            (8 * 365 * day, "8y"),
            (i64::MAX / 2_000_000_000, "146y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
        assert_eq!(human(SignedDuration::from_millis(-1999)), "0s");
        assert_eq!(human(SignedDuration::MAX), "292y");
    }

    #[test]
    fn what_is_no_time_is_unknown() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        for time in [None, Some(""), Some("yesterday"), Some("0001-01-01T00:00:00Z")] {
            assert_eq!(since(time, now), "<unknown>");
            assert_eq!(seconds(time), "0001-01-01T00:00:00Z");
        }
        assert_eq!(since(Some("2026-11-15T11:59:00.123456Z"), now), "59s");
        assert_eq!(since(Some("2026-11-15T12:59:00+01:00"), now), "60s");
        assert_eq!(since(Some("-009999-01-02T01:59:59Z"), now), "292y");
        assert_eq!(seconds(Some("2026-11-15T12:59:00.5+01:00")), "2026-11-15T11:59:00Z");
    }
}
