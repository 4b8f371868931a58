//! The help of the program: its commands in groups, and examples of each.

use std::fmt::Write as _;

use clap::Command;

/// The commands of one kind of work.
struct CommandGroup {
    title: &'static str,
    commands: &'static [(&'static str, Examples)],
}

/// Command lines, each with its effect.
type Examples = &'static [(&'static str, &'static str)];

const GROUPS: [CommandGroup; 4] = [
    CommandGroup {
        title: "Serve and call",
        commands: &[
            (
                "serve",
                &[
                    (
                        "weir serve prices.csv",
                        "serve a spreadsheet at once, on loopback",
                    ),
                    (
                        "weir serve --config weir.toml",
                        "serve a folder of contracts",
                    ),
                ],
            ),
            (
                "stdio",
                &[(
                    "weir stdio --config /srv/weir/weir.toml",
                    "what a desktop client starts",
                )],
            ),
            (
                "call",
                &[
                    (
                        "weir call --file prices.csv",
                        "list the tools of a spreadsheet",
                    ),
                    (
                        "weir call --file prices.csv list_prices --limit 3",
                        "call one of them",
                    ),
                    (
                        "weir call --url http://127.0.0.1:8484/mcp list_prices",
                        "call a tool of any MCP server",
                    ),
                ],
            ),
            (
                "tools",
                &[
                    ("weir tools llms", "read the tools as a model reads them"),
                    (
                        "weir tools clients prices.yaml",
                        "see which clients accept the tools of a contract",
                    ),
                    ("weir tools cost", "see how many tokens each view costs"),
                    (
                        "weir tools openapi prices",
                        "print the tools of a contract for plain HTTP",
                    ),
                ],
            ),
            (
                "connect",
                &[
                    ("weir connect claude-code", "the client starts Weir itself"),
                    (
                        "weir connect cursor --url http://127.0.0.1:8484/mcp",
                        "the client calls a running Weir",
                    ),
                    ("weir connect cursor --undo", "take it out again"),
                ],
            ),
        ],
    },
    CommandGroup {
        title: "Write",
        commands: &[
            (
                "draft",
                &[
                    (
                        "weir draft prices.csv",
                        "print a contract for a spreadsheet",
                    ),
                    (
                        "weir draft --connection desk --table tickets",
                        "for a table of a connection",
                    ),
                    (
                        "weir draft --url https://api.example/items",
                        "for a JSON endpoint",
                    ),
                    (
                        "weir draft --openapi api.yaml --only orders",
                        "for some operations of an HTTP API",
                    ),
                ],
            ),
            (
                "compile",
                &[("weir compile prices.yaml", "print the tools of a contract")],
            ),
            (
                "diff",
                &[
                    ("weir diff old.yaml new.yaml", "compare two files"),
                    (
                        "weir diff --against http://127.0.0.1:8484/mcp/prices prices.yaml",
                        "compare with what is served",
                    ),
                ],
            ),
            (
                "lint",
                &[("weir lint prices.yaml", "find words that mislead a model")],
            ),
            (
                "plugin",
                &[
                    ("weir plugin new numbers --lang rust", "begin a plugin"),
                    ("weir plugin build", "make its component"),
                    ("weir plugin list", "list the plugins of a running gateway"),
                ],
            ),
        ],
    },
    CommandGroup {
        title: "Look after a gateway",
        commands: &[
            (
                "contracts",
                &[
                    ("weir contracts list", "see what is live and what waits"),
                    (
                        "weir contracts submit prices.yaml",
                        "publish it, or hold it as a draft",
                    ),
                    (
                        "weir contracts apply contracts/",
                        "submit all files of a folder",
                    ),
                    ("weir contracts lock", "write down what is published"),
                ],
            ),
            (
                "collections",
                &[(
                    "weir collections describe prices items",
                    "see what has changed in its source",
                )],
            ),
            (
                "policy",
                &[
                    (
                        "weir policy check",
                        "say what is wrong with policies/*.cedar",
                    ),
                    (
                        "weir policy test policies/cases.yaml",
                        "try a table of cases",
                    ),
                ],
            ),
            (
                "keys",
                &[
                    (
                        "weir keys create --agent billing --contract prices",
                        "make a key for one contract",
                    ),
                    ("weir keys list", "list the keys with their access"),
                ],
            ),
            (
                "identity",
                &[(
                    "weir identity failures",
                    "see why requests were answered with 401",
                )],
            ),
            (
                "admins",
                &[
                    (
                        "weir admins create --name ada --role editor",
                        "make a key for an admin",
                    ),
                    ("weir admins link", "sign in at the console"),
                ],
            ),
            (
                "approvals",
                &[
                    ("weir approvals list", "see which writes wait for a person"),
                    (
                        "weir approvals approve p_5b1f… --fingerprint 9a0e…",
                        "let the agent make one, once",
                    ),
                ],
            ),
            (
                "audit",
                &[
                    ("weir audit tail --follow", "see the calls as they come"),
                    (
                        "weir audit query --agent billing",
                        "find the calls of an agent",
                    ),
                    ("weir audit verify", "prove that no record was changed"),
                    (
                        "weir audit collect --to all --from https://n1:8485 --from https://n2:8485",
                        "bring the trails of several gateways into one folder",
                    ),
                ],
            ),
            (
                "nodes",
                &[("weir nodes", "see the gateways that share the state")],
            ),
            ("reload", &[("weir reload", "apply an edited weir.toml")]),
            (
                "state",
                &[
                    (
                        "weir state backup /var/backups/weir-2026-11-22",
                        "copy the state while the gateway runs",
                    ),
                    (
                        "weir state migrate --to 'postgresql://weir:${env:STATE_PASSWORD}@db/weir'",
                        "move it to a database",
                    ),
                ],
            ),
        ],
    },
    CommandGroup {
        title: "Other servers",
        commands: &[
            (
                "upstream",
                &[
                    (
                        "weir upstream add time -- uvx mcp-server-time",
                        "look at a server, agree, and serve its tools",
                    ),
                    ("weir upstream list", "see the state of each server"),
                    (
                        "weir upstream accounts github",
                        "list the accounts that callers have connected",
                    ),
                ],
            ),
            (
                "extract",
                &[
                    (
                        "weir extract https://mcp.example/mcp",
                        "print what a server offers",
                    ),
                    (
                        "weir extract -- uvx mcp-server-time",
                        "print it for a server that a command starts",
                    ),
                    (
                        "weir extract --lists tools.json",
                        "print it for a tools/list answer",
                    ),
                ],
            ),
        ],
    },
];

/// Puts the commands in groups, and examples below the help of each.
pub(super) fn with_groups(mut command: Command) -> Command {
    for (name, examples) in GROUPS.iter().flat_map(|group| group.commands) {
        command = command.mut_subcommand(name, |it| {
            let examples = example_text(&it, examples);
            it.after_help(examples)
        });
    }
    let template = template(&command);
    command.help_template(template)
}

fn example_text(command: &Command, examples: Examples) -> String {
    let header = command.get_styles().get_header();
    let width = examples.iter().map(|(line, _)| line.len()).max();
    let width = width.unwrap_or_default();
    let mut text = format!("{header}Examples:{header:#}");
    for (line, meaning) in examples {
        write!(text, "\n  {line:width$}   {meaning}").expect("a text can be written to");
    }
    text
}

/// Returns the template of the program's help. Clap has one list of commands; this one has a list for each group.
fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let names = command.get_subcommands().map(|it| it.get_name().len());
    let width = names.max().unwrap_or_default();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for group in &GROUPS {
        write!(text, "\n{header}{}:{header:#}\n", group.title).expect("as above");
        for (name, _) in group.commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            writeln!(text, "  {literal}{name:width$}{literal:#}  {about}").expect("as above");
        }
    }
    write!(text, "\n{header}Options:{header:#}\n{{options}}\n\n").expect("as above");
    text + "`weir COMMAND --help` shows examples of each."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::CliArgs;

    #[test]
    fn each_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.commands)
            .map(|(name, _)| *name)
            .collect();
        let command = CliArgs::command();
        let visible: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), visible);
        assert_eq!(grouped.len(), visible.len());
    }

    /// A line that is above another command in the source would describe that one.
    #[test]
    fn each_line_describes_its_own_command() {
        let command = CliArgs::command();
        let names = GROUPS.iter().flat_map(|group| group.commands);
        let lines: Vec<(&str, String)> = names
            .map(|(name, _)| {
                let about = command.find_subcommand(name).and_then(Command::get_about);
                (*name, about.map(ToString::to_string).unwrap_or_default())
            })
            .collect();
        let unlike: BTreeSet<&str> = lines.iter().map(|(_, about)| about.as_str()).collect();
        assert_eq!(unlike.len(), lines.len(), "{lines:?}");
        for (name, about) in [
            ("nodes", "Gateways that share a state"),
            (
                "reload",
                "Have a running gateway read its configuration again",
            ),
            ("state", "What a gateway keeps"),
        ] {
            let line = lines.iter().find(|(one, _)| *one == name);
            assert!(
                line.is_some_and(|(_, line)| line.starts_with(about)),
                "{name}: {line:?}"
            );
        }
    }

    /// `--help` explains each argument that it lists.
    #[test]
    fn each_argument_has_a_description() {
        fn collect(command: &Command, path: &str, bare: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            let arguments = command.get_arguments().filter(|it| !it.is_hide_set());
            for argument in arguments.filter(|it| it.get_help().is_none()) {
                bare.push(format!("{path} {}", argument.get_id()));
            }
            for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
                collect(inner, &path, bare);
            }
        }
        let mut bare = Vec::new();
        collect(&CliArgs::command(), "", &mut bare);
        assert_eq!(bare, Vec::<String>::new());
    }

    #[test]
    fn examples_are_lines_that_are_understood() {
        for (name, examples) in GROUPS.iter().flat_map(|group| group.commands) {
            assert!(!examples.is_empty(), "{name}");
            for (line, _) in *examples {
                let words: Vec<&str> = line.split_whitespace().collect();
                assert_eq!(words[..2], ["weir", *name], "{line}");
                if let Err(error) = with_groups(CliArgs::command()).try_get_matches_from(words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
