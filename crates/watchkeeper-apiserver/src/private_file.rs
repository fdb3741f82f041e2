//! Files with secrets in them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Writes a file that only its owner can read, wholly or not at all: somebody who reads the path meanwhile finds what was
/// there before, or everything.
pub(crate) fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.{:x}.tmp", std::process::id(), fastrand::u64(..)));
    let beside = path.with_file_name(beside);
    let written = create(&beside).map_err(E::from).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        Ok(())
    });
    written.inspect_err(|_| {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
    })
}

/// Its mode is right from the start, not after a moment in which others could open it.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
