//! Numbers as a row of small bars.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each number; the highest of them is a whole one, and nothing is a blank.
pub(crate) fn spark(numbers: &[u64]) -> String {
    let highest = numbers.iter().copied().max().unwrap_or_default();
    // One change a second shall not look like much.
    spark_across(numbers, highest.max(4))
}

/// A bar for each number, of which `highest` is a whole one.
fn spark_across(numbers: &[u64], highest: u64) -> String {
    let bar = |number: &u64| match number {
        0 => ' ',
        number => {
            let level = (u128::from(*number) * BARS.len() as u128).div_ceil(u128::from(highest.max(1)));
            usize::try_from(level).ok().and_then(|level| BARS.get(level - 1)).copied().unwrap_or('█')
        }
    };
    numbers.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_is_whole_and_nothing_is_blank() {
        assert_eq!(spark(&[0, 1, 8, 16]), " ▁▄█");
        assert_eq!(spark(&[0, 1]), " ▂");
        assert_eq!(spark(&[]), "");
        assert_eq!(spark_across(&[u64::MAX, 1], u64::MAX), "█▁");
        assert_eq!(spark_across(&[9], 0), "█");
    }
}
