//! What has this process used?
//!
//! Resident memory is known everywhere; its peak and the CPU time are read from `/proc`, and so on Linux only.

use std::time::Duration;

/// The kernel counts CPU time for programs in hundredths of a second, on every machine.
const TICK: Duration = Duration::from_millis(10);

/// Bytes that are resident now.
pub(super) fn resident() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

/// The most bytes that were resident at any time.
pub(super) fn peak() -> Option<u64> {
    peak_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// CPU time so far, of all threads, in the program and in the kernel.
pub(super) fn cpu() -> Option<Duration> {
    cpu_in(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn cpu_in(stat: &str) -> Option<Duration> {
    // The program's name comes before, and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    TICK.checked_mul(user.checked_add(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 5 0";
        assert_eq!(cpu_in(stat), Some(Duration::from_secs(2)));
        assert_eq!(peak_in("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n"), Some(2 << 20));
        assert_eq!((cpu_in("nonsense"), peak_in("")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_something() {
        assert!(cpu().is_some());
        assert!(peak().is_some_and(|peak| peak > 1 << 20));
        assert!(resident().is_some_and(|resident| resident > 1 << 20));
    }
}
