//! What a suite is told on its command line.

/// `[--short] [CASE...]`
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// Fewer objects, and no long waits.
    pub short: bool,
    /// The cases to run; all, if there are none.
    pub cases: Vec<String>,
}

impl Arguments {
    /// Those of this process.
    pub fn read() -> Self {
        let mut arguments = Self::default();
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--short" => arguments.short = true,
                _ => arguments.cases.push(argument),
            }
        }
        arguments
    }

    /// Whether a case is to run: it is named, or none is. A name ending in `*` stands for all that begin so.
    pub fn wants(&self, case: &str) -> bool {
        let is_meant = |name: &String| match name.strip_suffix('*') {
            Some(beginning) => case.starts_with(beginning),
            None => case == name,
        };
        self.cases.is_empty() || self.cases.iter().any(is_meant)
    }
}
