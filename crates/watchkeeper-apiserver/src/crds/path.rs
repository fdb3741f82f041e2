//! Where something stands, as error texts write it: `spec.items[2].name`, `spec.validation.openAPIV3Schema.properties[a]`.
//!
//! A path is made of references to its parents: it costs nothing until somebody shows it.

use std::fmt;

/// A place in a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root(&'a str),
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// Where everything begins; mostly nothing.
    pub(crate) fn root(name: &'a str) -> Self {
        Self { parent: None, step: Step::Root(name) }
    }

    /// `.name`
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// `[name]`
    pub(crate) fn key(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(name) }
    }

    /// `[2]`
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Documents have a bounded depth, and so have their paths.
        let mut steps = vec![self];
        while let Some(parent) = steps.last().and_then(|last| last.parent) {
            steps.push(parent);
        }
        let mut is_first = true;
        for path in steps.into_iter().rev() {
            match path.step {
                Step::Root("") => continue,
                Step::Root(name) => f.write_str(name)?,
                Step::Field(name) if is_first => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(name) => write!(f, "[{name}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            is_first = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_kubernetes_does() {
        let root = Path::root("");
        let (spec, schema) = (root.field("spec"), Path::root("spec.validation"));
        assert_eq!(spec.field("items").index(2).field("name").to_string(), "spec.items[2].name");
        assert_eq!(schema.field("properties").key("a").to_string(), "spec.validation.properties[a]");
        assert_eq!(root.to_string(), "");
    }
}
