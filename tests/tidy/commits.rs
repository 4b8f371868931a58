//! Subjects of commits: `area: effect in the imperative`, one clause of at most 72 characters.

/// Commits from then on are held to it.
pub(super) const SINCE: &str = "2026-11-28T14:30:00Z";
const LENGTH_MAX: usize = 72;

/// Returns what is wrong with a subject.
pub(super) fn problem(subject: &str) -> Option<&'static str> {
    let is_area = |area: &str| {
        let allowed = |letter: char| letter.is_ascii_lowercase() || ", -_./".contains(letter);
        !area.is_empty() && area.chars().all(|it| allowed(it) || it.is_ascii_digit())
    };
    if subject.chars().count() > LENGTH_MAX {
        return Some("it has more than 72 characters");
    }
    match subject.split_once(": ") {
        Some((area, _)) if !is_area(area) => Some("its area is not in lower case"),
        Some((_, effect)) if effect.contains("; ") || effect.ends_with('.') => {
            Some("it is more than one clause, or ends with a full stop")
        }
        Some(_) => None,
        None => Some("it does not begin with an area, as in `call: …`"),
    }
}

#[test]
fn a_subject_is_one_short_clause_of_an_area() {
    for good in [
        "cli, gateway: name the commit in `--version`",
        "plugin-sdk: read numbers of an attribute in functions of their own",
    ] {
        assert_eq!(problem(good), None, "{good}");
    }
    for bad in [
        "Mend the names",
        "cli: name the commit; mend the names",
        "cli: name the commit.",
        "The CLI: name the commit",
        "cli: name the commit in the version, the packages, the documents and the site",
    ] {
        assert!(problem(bad).is_some(), "{bad}");
    }
}
