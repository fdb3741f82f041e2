//! The examples of kubectl's documentation and tests, our differences, and templates that nobody would write.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn cluster() -> Value {
    json!({
        "kind": "List",
        "items": [
            {"kind": "None", "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
             "status": {"capacity": {"cpu": "4"}, "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}]}},
            {"kind": "None", "metadata": {"name": "127.0.0.2", "labels": {"kubernetes.io/hostname": "127.0.0.2"}},
             "status": {"capacity": {"cpu": "8"}, "addresses": [
                {"type": "LegacyHostIP", "address": "127.0.0.2"}, {"type": "another", "address": "127.0.0.3"}]}},
        ],
        "users": [{"name": "myself", "user": {}}, {"name": "e2e", "user": {"username": "admin", "password": "secret"}}],
        "numbers": [10, 11, 12, 13, 14],
        "ready": [{"name": "a", "ok": true, "weight": 1.5}, {"name": "b", "ok": false, "weight": 3}],
        "nothing": null,
    })
}

fn print(template: &str) -> String {
    match Template::parse(template) {
        Err(error) => format!("syntax: {error}"),
        Ok(template) => template.print(&cluster()).unwrap_or_else(|error| format!("error: {error}")),
    }
}

#[track_caller]
fn prints(cases: &[(&str, &str)]) {
    for (template, expected) in cases {
        assert_eq!(print(template), *expected, "{template}");
    }
}

#[test]
fn the_examples_of_the_documentation_print_what_it_says() {
    prints(&[
        ("kind is {.kind}", "kind is List"),
        ("{['kind']}", "List"),
        ("{..name}", "127.0.0.1 127.0.0.2 a b myself e2e"),
        ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{.users[0].name}", "myself"),
        ("{.users[-1].name}", "e2e"),
        ("{.items[*]['metadata.name', 'status.capacity']}", r#"127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}"#),
        (r#"{.users[?(@.name=="e2e")].user.password}"#, "secret"),
        (
            "{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}",
            r#"[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] "#,
        ),
        (r#"{range .items[*]}{.metadata.name}{'\t'}{end}"#, "127.0.0.1\t127.0.0.2\t"),
        (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", "127.0.0.1"),
        (r"{.items[0].metadata.labels['kubernetes\.io/hostname']}", "127.0.0.1"),
        ("{@.kind} {$.kind}", "List List"),
    ]);
}

#[test]
fn slices_count_from_both_ends() {
    prints(&[
        ("{.numbers[1:3]}", "11 12"),
        ("{.numbers[-2:]}", "13 14"),
        ("{.numbers[:-3]}", "10 11"),
        ("{.numbers[::2]}", "10 12 14"),
        ("{.numbers[0,2]}", "10 12"),
        ("{.numbers[3:1]}", ""),
        ("{.numbers[9]}", ""),
        ("{.numbers[]}", "10"),
        ("{.numbers[-9]}", ""),
        ("{.numbers}", "[10,11,12,13,14]"),
    ]);
}

#[test]
fn filters_compare_texts_numbers_and_truths() {
    prints(&[
        (r#"{.items[*].status.addresses[?(@.type!="LegacyHostIP")].address}"#, "127.0.0.3"),
        ("{.numbers[?(@>=13)]}", "13 14"),
        ("{.numbers[?(@<10.5)]}", "10"),
        ("{.ready[?(@.ok==true)].name}", "a"),
        ("{.ready[?(@.weight==3.0)].name}", "b"),
        ("{.users[?(@.user.password)].name}", "e2e"),
        ("{.ready[?( @.name == 'b' )].weight}", "3"),
        (r#"{.numbers[?(@=="10")]}"#, ""),
        (r#"{.users[?(@.name=="a,]b")].name}"#, ""),
        (r#"{.items[?(@.status.addresses[?(@.type=="another")])].metadata.name}"#, "127.0.0.2"),
    ]);
}

#[test]
fn ranges_nest_and_what_follows_them_sees_the_object_again() {
    prints(&[
        (
            "{range .items[*]}{.metadata.name}:{range .status.addresses[*]} {.address}{end};{end}{.kind}",
            "127.0.0.1: 127.0.0.1;127.0.0.2: 127.0.0.2 127.0.0.3;List",
        ),
        ("{range .missing[*]}x{end}after", "after"),
        ("{range .numbers[:2]}<{@}>", "<10><11>"),
    ]);
}

#[test]
fn what_is_not_there_is_nothing_and_null_is_said() {
    prints(&[
        ("{.missing.deeper[3].name}", ""),
        ("{.kind.name}", ""),
        ("{.nothing}", "<nil>"),
        ("{.nothing[*]}", ""),
        ("{.nothing.name}", ""),
        ("{.kind[0]}", "error: an index or a filter is used on something that is not a list"),
        (r#"{"a"} {7} {-1.5} {true}"#, "a 7 -1.5 true"),
        (r#"{"\u00e9\n\"\\"}"#, "é\n\"\\"),
        ("{.}", &cluster().to_string()),
    ]);
}

#[test]
fn a_template_that_is_wrong_says_where() {
    prints(&[
        ("{.kind", "syntax: the template ends without a } that ends the action at character 7"),
        ("{kind}", "syntax: unknown word \"kind\": a path begins with a dot at character 2"),
        ("{end}", "syntax: {end} without {range} at character 6"),
        ("{.a[x]}", "syntax: \"x\" is no index at character 5"),
        ("{.a[?(@.b=\"c\")]}", "syntax: \"=\" is no comparison at character 10"),
        ("{.a[?(@.b==c)]}", "syntax: unknown word \"c\": text stands in quotes at character 12"),
        ("{\"a}", "syntax: unterminated quoted text at character 5"),
        ("{....}", "syntax: two recursive descents in a row at character 6"),
    ]);
}

#[test]
fn a_path_may_lack_its_braces_and_its_dot() {
    let paths = ["metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"];
    let expected = Template::parse("{.metadata.name}");
    assert!(paths.iter().all(|path| Template::path(path) == expected && expected.is_ok()));
    assert_eq!(Template::path("..name"), Template::parse("{..name}"));
}

#[test]
fn descents_that_multiply_come_to_an_end() {
    let deep = (0..60).fold(json!([1, 2]), |inner, _| json!([inner, 3]));
    for template in ["{..*..*..*..*}", "{range ..*}{range ..*}{range ..*}{range ..*}x"] {
        let printed = Template::parse(template).map(|template| template.print(&deep).map(|text| text.len()));
        assert_eq!(printed, Ok(Err(EvaluationError::TooManyValues)), "{template}");
    }
}

#[test]
fn nesting_is_bounded() {
    let filters = format!("{{{}{}}}", ".a[?(@".repeat(5000), ")]".repeat(5000));
    let ranges = "{range .a}".repeat(5000);
    assert!(Template::parse(&filters).is_err());
    assert!(Template::parse(&ranges).is_err());
}

proptest! {
    #[test]
    fn no_template_panics(template in any::<String>()) {
        print(&template);
    }

    #[test]
    fn no_template_of_our_characters_panics(
        template in r#"(\{|\}|\[|\]|\?|\(|\)|@|\$|\.|\*|:|,|'|"|\\|-|=|<|!|range|end| |0|7|items|name|é|\n){0,24}"#
    ) {
        print(&template);
        print(&format!("{{{template}}}"));
        let _ = Template::path(&template);
    }

    #[test]
    fn a_name_is_found_whatever_it_is_made_of(name in "[^*]+") {
        let object = json!({"a": {name.as_str(): "found"}});
        let escaped: String = name.chars().flat_map(|character| ['\\', character]).collect();
        let template = Template::parse(&format!("{{.a.{escaped}}}"));
        prop_assert_eq!(template.map(|template| template.print(&object)), Ok(Ok("found".to_owned())));
    }
}
