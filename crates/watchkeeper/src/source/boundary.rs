//! Where does a JSON object end?
//!
//! A byte-by-byte scanner for the rare cases in which nothing faster will do: an object that is too large to be kept, and
//! a watch whose events span several lines. It remembers where it is between two pieces of the stream. It does not check
//! the syntax: whoever wants the object parses it.

/// Follows brackets and strings from the first byte of an object on.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Boundary {
    /// Scans on, and returns how many bytes belong to the object if it ends in `bytes`.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.escaped {
                self.escaped = false;
                continue;
            }
            match byte {
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth = self.depth.saturating_add(1),
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_however_the_bytes_are_cut() {
        let json = br#"{"a":[{"b":"}\"]"},"\\"],"c":{}} tail"#;
        let end = json.len() - " tail".len();
        for cut in 0..end {
            let mut boundary = Boundary::default();
            assert_eq!(boundary.scan(&json[..cut]), None, "cut at {cut}");
            assert_eq!(boundary.scan(&json[cut..]), Some(end - cut), "cut at {cut}");
        }
    }
}
