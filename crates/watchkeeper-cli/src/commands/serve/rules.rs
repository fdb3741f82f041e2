//! Who may do what?
//!
//! A file of users with their tokens, and of what they may do. It is read strictly: what is misspelt would otherwise be a rule
//! that allows nothing. `docs/apiserver.md` has the format.

use std::fs;
use std::path::Path;

use watchkeeper_apiserver::AccessRules;

use crate::failure::{Exit, Failure, Outcome};

/// Reads the rules of a file.
pub(super) fn read(path: &Path) -> Outcome<AccessRules> {
    let failed = |why: String| {
        Failure::new(Exit::Error, format!("the rules of {} cannot be used", path.display()))
            .because(why)
            .try_this("see the format, with an example, in docs/apiserver.md")
    };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    parse(&text).map_err(failed)
}

/// Tokens are in the file: what is wrong with it is said without a part of it.
fn parse(text: &str) -> Result<AccessRules, String> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation_can_be_used() {
        let docs = include_str!("../../../../../docs/apiserver.md");
        let (_, rest) = docs.split_once("```yaml\n# rules.yaml\n").expect("an example");
        parse(rest.split_once("```").expect("its end").0).expect("rules");
    }

    #[test]
    fn a_file_of_rules_is_yaml_or_json_and_misspelt_names_are_errors() {
        let yaml = "\
users:
- {name: alice, token: alices-token, groups: [developers]}
rules:
- {groups: [developers], namespaces: [shop], verbs: [get, list, watch], apiGroups: [''], resources: [pods]}
- {users: [alice], verbs: [get], nonResourceURLs: [/metrics]}
";
        assert!(parse(yaml).is_ok());
        assert!(parse(r#"{"users": [{"name": "bob"}]}"#).is_ok());
        for bad in ["users: [{name: alice, tokn: x}]", "rules: [{verbs: get}]", "rules: [{resource: [pods]}]", "[]"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let error = parse("users: [{name: alice, token: [secret-token]}]").expect_err("no text");
        assert!(!error.contains("secret-token"), "{error}");
    }
}
