//! What has this process used? Memory is read from `/proc`, and so on Linux only.

use std::fs;
use std::time::Duration;

use super::{Failure, Outcome};

/// CPU time so far, of all threads, in the program and in the kernel.
#[cfg(unix)]
pub(crate) fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Where it is not known, the driver ends when it asks for memory.
#[cfg(not(unix))]
pub(crate) fn cpu() -> Duration {
    Duration::ZERO
}

/// Bytes that are resident now.
pub(crate) fn resident() -> Outcome<u64> {
    memory("VmRSS:")
}

/// The most bytes that were resident at any time, or since the last reset.
pub(crate) fn peak() -> Outcome<u64> {
    memory("VmHWM:")
}

/// From now on the peak is that of what comes.
pub(crate) fn reset_peak() -> Outcome {
    fs::write("/proc/self/clear_refs", "5")
        .map_err(|error| format!("the peak of memory cannot be reset: {error}; this takes a Linux with /proc").into())
}

fn memory(name: &str) -> Outcome<u64> {
    let unknown =
        |why: String| Failure::from(format!("memory cannot be measured: {why}; this takes a Linux with /proc"));
    let status = fs::read_to_string("/proc/self/status").map_err(|error| unknown(error.to_string()))?;
    memory_in(&status, name).ok_or_else(|| unknown(format!("there is no {name}")))
}

fn memory_in(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_is_read() {
        let status = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(memory_in(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(memory_in(status, "VmRSS:"), Some(1024));
        assert_eq!(memory_in(status, "VmSwap:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_something() {
        let before = cpu();
        let (peak, resident) = (peak().expect("a peak"), resident().expect("resident memory"));
        assert!(peak > 1 << 20 && resident > 1 << 20);
        assert!(cpu() > before);
    }
}
