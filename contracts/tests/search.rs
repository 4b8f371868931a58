//! Tests whether the tools that people ask for are found, beside what a plain search for their words finds.
#![expect(
    clippy::print_stdout,
    reason = "both rates are for the reader of the run"
)]

#[path = "search/tools.rs"]
mod tools;

use weir_contracts::search::ToolIndex;

use self::tools::{Listed, of_many_services, service, tools};

fn questions() -> Vec<(Vec<&'static str>, &'static str)> {
    let lines = include_str!("search/questions.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let split = lines.map(|line| line.split_once(": ").expect("a tool and a question"));
    split
        .map(|(names, question)| (names.split('|').collect(), question))
        .collect()
}

/// Tools, and what is searched: by the index, and by plain text beside it.
struct Searched {
    tools: Vec<Listed>,
    index: ToolIndex,
    plain: Vec<String>,
}

impl Searched {
    fn new(tools: Vec<Listed>) -> Self {
        let index = ToolIndex::new(&tools.iter().map(Listed::text).collect::<Vec<_>>());
        let plain = |tool: &Listed| {
            format!(
                "{} {} {}",
                tool.name,
                tool.title.as_deref().unwrap_or_default(),
                tool.description
            )
            .to_lowercase()
        };
        Self {
            index,
            plain: tools.iter().map(plain).collect(),
            tools,
        }
    }

    /// Searches by plain text: returns the tools with the most words of the question, in the order of their list.
    fn substrings(&self, question: &str) -> Vec<usize> {
        let words: Vec<String> = question.split_whitespace().map(str::to_lowercase).collect();
        let score = |text: &String| words.iter().filter(|word| text.contains(*word)).count();
        let scores = self.plain.iter().map(score).enumerate();
        let mut found: Vec<(usize, usize)> = scores.filter(|(_, score)| *score > 0).collect();
        found.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        found
            .into_iter()
            .map(|(number, _)| number)
            .take(5)
            .collect()
    }

    /// Checks that what a question about something else finds is marked as weak.
    fn finds_weak_matches(&self, question: &str) {
        let found = self.index.find(question, 20);
        assert!(
            found.iter().all(|tool| tool.is_weak),
            "{question}: no tool does that, but {found:?} was found"
        );
    }
}

/// The results of the questions.
#[derive(Default)]
struct Tally {
    asked: usize,
    first: usize,
    among_five: usize,
    plain: usize,
    missed: Vec<String>,
}

impl Tally {
    /// Counts one question: `wanted` says whether a tool will do.
    fn count(&mut self, searched: &Searched, question: &str, wanted: impl Fn(&str) -> bool) {
        let answer: Vec<usize> = searched
            .index
            .find(question, 5)
            .iter()
            .map(|tool| tool.number)
            .collect();
        let name = |number: &usize| &*searched.tools[*number].name;
        let is_meant = |number: &usize| wanted(name(number));
        self.asked += 1;
        self.first += usize::from(answer.first().is_some_and(is_meant));
        self.plain += usize::from(searched.substrings(question).iter().any(is_meant));
        match answer.iter().any(is_meant) {
            true => self.among_five += 1,
            false => {
                let names: Vec<&str> = answer.iter().map(name).collect();
                self.missed.push(format!("{question}: {names:?}"));
            }
        }
    }

    fn part(&self, count: usize) -> f64 {
        let few = |count: usize| f64::from(u32::try_from(count).expect("few"));
        few(count) / few(self.asked)
    }

    /// Prints the rates, and holds them against what is promised.
    fn holds(&self, tools: usize) {
        let answer = format!(
            "{} questions over {tools} tools: first {:.3}, among five {:.3}; by plain text among five {:.3}\n{}",
            self.asked,
            self.part(self.first),
            self.part(self.among_five),
            self.part(self.plain),
            self.missed.join("\n")
        );
        println!("{answer}");
        assert!(self.asked >= 200, "{answer}");
        assert!(self.part(self.among_five) >= 0.94, "{answer}");
        assert!(self.among_five > self.plain, "{answer}");
    }
}

#[test]
fn what_is_asked_for_is_among_the_first_five() {
    let searched = Searched::new(tools());
    let mut tally = Tally::default();
    for (names, question) in questions() {
        if names == ["-"] {
            searched.finds_weak_matches(question);
            continue;
        }
        for name in &names {
            assert!(
                searched.tools.iter().any(|tool| tool.name == **name),
                "{name} is no tool"
            );
        }
        tally.count(&searched, question, |name| names.contains(&name));
    }
    tally.holds(searched.tools.len());
}

/// Among ten thousand tools, a question that names a service finds its tool and no other service's.
#[test]
fn it_is_among_the_first_five_of_ten_thousand() {
    let searched = Searched::new(of_many_services(10_000));
    let services = searched.tools.len() / tools().len();
    let mut tally = Tally::default();
    for (number, (names, question)) in questions().into_iter().enumerate() {
        if names == ["-"] {
            searched.finds_weak_matches(question);
            continue;
        }
        // Each question is about another service.
        let service = service(number * 7 % services);
        let meant: Vec<String> = names
            .iter()
            .map(|name| format!("{service}_{name}"))
            .collect();
        tally.count(&searched, &format!("{question} in {service}"), |name| {
            meant.iter().any(|one| one == name)
        });
    }
    tally.holds(searched.tools.len());
}

/// Models ask for a tool by the name that it would have in code.
#[test]
fn a_name_in_one_word_is_found_by_its_parts() {
    let texts = [
        "get_price\nFinds one price by its id.",
        "create_order\nCreates an order.",
    ];
    let index = ToolIndex::new(&texts.map(str::to_owned));
    for question in ["get_price", "getPrice"] {
        let found = index.find(question, 5);
        let first = found.first().map(|tool| (tool.number, tool.is_weak));
        assert_eq!(first, Some((0, false)), "{question}");
    }
    assert!(index.find("getInvoice", 5).is_empty());
}

/// The texts of tools in other languages, and questions that share parts of words with one of them. Those of the
/// same place belong together.
const PARTS: &[(&str, &[&str])] = &[
    (
        "suche_unterkunft\nFindet Ferienwohnungen und Hotels an einem Ort.",
        &["Ferienwohnung", "wohnungen", "Ferienhotels"],
    ),
    (
        "praemie\nBerechnet die Haftpflichtversicherungsprämie eines Fahrzeugs.",
        &["Haftpflicht", "Versicherung", "Prämie", "Fahrzeugen"],
    ),
    (
        "news\nПоказывает последние новости города.",
        &["новость", "новостей", "городами", "последняя"],
    ),
    (
        "mishloach\nבודק את מצב המשלוח של החבילה",
        &["משלוח חבילה", "חבילה"],
    ),
    (
        "saa\nAntaa sääennusteen paikkakunnalle.",
        &["sääennuste", "ennuste"],
    ),
    (
        "book_visit\nHastanede randevular oluşturur.",
        &["randevu", "hastane", "randevularım"],
    ),
];

#[test]
fn parts_of_words_are_found_where_no_word_is_shared() {
    let texts: Vec<String> = PARTS.iter().map(|(text, _)| (*text).to_owned()).collect();
    let index = ToolIndex::new(&texts);
    for (number, (_, questions)) in PARTS.iter().enumerate() {
        for question in *questions {
            let found = index.find(question, 5);
            let found: Vec<_> = found
                .iter()
                .map(|tool| (tool.number, tool.is_weak))
                .collect();
            assert_eq!(
                found.first(),
                Some(&(number, true)),
                "{question}: {found:?}"
            );
        }
    }
    for question in [
        "Wetter",
        "wohn",
        "погода",
        "מסעדה",
        "12345",
        "restaurant",
        "",
        "\u{0}\u{202e}…",
    ] {
        let found = index.find(question, 5);
        assert!(found.is_empty(), "{question}: {found:?}");
    }
}

/// A word that a tool has as a whole is no reason to look for others that have it as a part.
#[test]
fn parts_of_words_do_not_count_beside_whole_ones() {
    let texts = [
        "order\nCreates an order.",
        "border\nReturns the borders of a land.",
    ];
    let index = ToolIndex::new(&texts.map(str::to_owned));
    let found = index.find("order", 5);
    let found: Vec<_> = found
        .iter()
        .map(|tool| (tool.number, tool.is_weak))
        .collect();
    assert_eq!(found, [(0, false)]);
    let found = index.find("preorder", 5);
    let found: Vec<_> = found
        .iter()
        .map(|tool| (tool.number, tool.is_weak))
        .collect();
    assert_eq!(found, [(0, true)]);
}

/// GitHub's server has a tool of that name.
#[test]
fn a_name_of_empty_words_is_found() {
    let texts = [
        "github_get_me\nReturns details of the authenticated user.",
        "github_get_issue\nReturns an issue.",
    ];
    let index = ToolIndex::new(&texts.map(str::to_owned));
    for question in ["get_me", "getMe", "get me"] {
        let found = index.find(question, 5);
        let found: Vec<_> = found
            .iter()
            .map(|tool| (tool.number, tool.is_weak))
            .collect();
        assert_eq!(found, [(0, true)], "{question}");
    }
    assert!(index.find("what is it", 5).is_empty());
}
