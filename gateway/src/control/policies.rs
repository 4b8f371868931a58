//! The policies in force: the valid files of the folder, and the last valid text of each faulty file.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use weir_contracts::{CompiledContract, FileProblem};
use weir_policy::{
    DefaultDecision, PolicyFile, PolicyJudge, PolicyRules, PolicyVocabulary, broken_by,
    check_rules, read_folder,
};

/// Policies, and the contracts that they are checked against. A faulty file is refused, and its previous text remains in force.
#[derive(Default)]
pub struct PolicySource {
    held: Mutex<HeldPolicies>,
    /// Locked while the policies are checked, which takes too long to hold the lock of `held`.
    renewing: Mutex<()>,
}

#[derive(Clone, Default)]
struct HeldPolicies {
    /// The files as they were last read.
    files: Vec<PolicyFile>,
    /// The parts of the folder that could not be read.
    unreadable: Vec<FileProblem>,
    default: DefaultDecision,
    /// The files in force, by name.
    in_force: BTreeMap<String, String>,
    /// Whether any files were ever put in force: the files at a start have no predecessors.
    has_begun: bool,
    rules: Arc<PolicyRules>,
    /// The contracts against which the rules were judged.
    contracts: Vec<Arc<CompiledContract>>,
    judge: Option<Arc<PolicyJudge>>,
    is_stale: bool,
    /// The problems found in the files when they were read.
    problems: Vec<FileProblem>,
}

impl PolicySource {
    /// Reads the folder. Returns `true` if it has changed.
    pub fn read(&self, folder: &Path, default: DefaultDecision) -> bool {
        let (files, mut unreadable) = read_folder(folder);
        let mut held = self.held.lock();
        // A folder may be missing for a moment, for example while it is replaced or mounted.
        if files.is_empty() && !held.in_force.is_empty() && !folder.exists() {
            let message = "the folder of policies is gone: those in force stay";
            let problem = FileProblem::new(&folder.display().to_string(), "", message);
            unreadable
                .push(problem.hint("to take them away, leave the folder there without files"));
        }
        let same = held.files == files && held.unreadable == unreadable && held.default == default;
        if same {
            return false;
        }
        held.files = files;
        held.unreadable = unreadable;
        held.default = default;
        held.is_stale = true;
        true
    }

    /// Returns the judge for these contracts; `None` if no policy is in force.
    pub fn judge(&self, contracts: &[Arc<CompiledContract>]) -> Option<Arc<PolicyJudge>> {
        if let Some(judge) = self.held.lock().known_judge(contracts) {
            return judge;
        }
        apart(|| {
            let _renewing = self.renewing.lock();
            let mut renewed = self.held.lock().clone();
            if let Some(judge) = renewed.known_judge(contracts) {
                return judge;
            }
            renewed.renew(contracts);
            let judge = renewed.judge.clone();
            self.held.lock().take(renewed);
            judge
        })
    }

    /// Returns the problems of the files of the folder.
    pub fn problems(&self) -> Vec<FileProblem> {
        self.held.lock().problems.clone()
    }

    /// Returns the problems of files without a kept text. A gateway does not start without its policies.
    pub fn missing(&self) -> Vec<FileProblem> {
        let held = self.held.lock();
        let is_missing = |problem: &&FileProblem| !held.in_force.contains_key(&problem.file);
        held.problems.iter().filter(is_missing).cloned().collect()
    }

    /// Returns the policies in force.
    pub fn rules(&self) -> Arc<PolicyRules> {
        self.held.lock().rules.clone()
    }

    /// Returns the policies that would break if `contract` were live among `live`, each with its place. Files of the folder that
    /// wait for exactly this change are checked instead: they come into force together with it.
    pub fn broken_by(
        &self,
        live: &[Arc<CompiledContract>],
        contract: &CompiledContract,
    ) -> Vec<FileProblem> {
        apart(|| self.find_broken(live, contract))
    }

    fn find_broken(
        &self,
        live: &[Arc<CompiledContract>],
        contract: &CompiledContract,
    ) -> Vec<FileProblem> {
        let (rules, waiting) = {
            let held = self.held.lock();
            (held.rules.clone(), held.waiting())
        };
        if rules.rules().is_empty() {
            return Vec::new();
        }
        let before = live.iter().find(|before| before.name == contract.name);
        if before.is_some_and(|before| before.tools == contract.tools) {
            return Vec::new();
        }
        let vocabulary = PolicyVocabulary::new(live.iter().map(Arc::as_ref));
        let problems = broken_by(&rules, &vocabulary, contract);
        if problems.is_empty() {
            return problems;
        }
        match waiting {
            Some(waiting) if check_rules(&waiting, &vocabulary.with(contract)).is_empty() => {
                Vec::new()
            }
            _ => problems,
        }
    }
}

/// Does work that takes long. On a worker of the runtime, waiting requests are moved to another worker first.
pub(super) fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl HeldPolicies {
    /// Returns the judge for these contracts, if it already exists.
    fn known_judge(&self, contracts: &[Arc<CompiledContract>]) -> Option<Option<Arc<PolicyJudge>>> {
        let known = &self.contracts;
        let is_same = known.len() == contracts.len()
            && known.iter().zip(contracts).all(|(a, b)| Arc::ptr_eq(a, b));
        (is_same && !self.is_stale).then(|| self.judge.clone())
    }

    /// Applies the checked files. Files that were read meanwhile are checked next.
    fn take(&mut self, renewed: Self) {
        let read = std::mem::replace(self, renewed);
        self.is_stale = read.files != self.files
            || read.unreadable != self.unreadable
            || read.default != self.default;
        self.files = read.files;
        self.unreadable = read.unreadable;
        self.default = read.default;
    }

    /// Returns the files of the folder as policies, if they can be read and are not in force.
    fn waiting(&self) -> Option<PolicyRules> {
        if self.problems.is_empty() && !self.is_stale {
            return None;
        }
        PolicyRules::read(&self.files, self.default).ok()
    }

    /// Puts the valid files in force.
    fn renew(&mut self, contracts: &[Arc<CompiledContract>]) {
        let vocabulary = PolicyVocabulary::new(contracts.iter().map(Arc::as_ref));
        let mut problems = self.unreadable.clone();
        let mut files = self.files.clone();
        // A file that cannot be read now remains as it was.
        for problem in &self.unreadable {
            if Path::new(&problem.file)
                .extension()
                .is_some_and(|ending| ending == "cedar")
            {
                self.take_back(&problem.file, &mut files);
                continue;
            }
            // If the folder cannot be read, the policies in force remain.
            for name in self.in_force.keys() {
                if files.iter().all(|file| file.name != *name) {
                    self.take_back(name, &mut files);
                }
            }
        }
        let is_start = !self.has_begun;
        let rules = loop {
            match PolicyRules::read(&files, self.default) {
                Ok(rules) => {
                    let found = check_rules(&rules, &vocabulary);
                    let faulty = faulty_files(&found, &files);
                    problems.extend(
                        found
                            .into_iter()
                            .filter(|problem| !self.is_kept(problem, &files)),
                    );
                    // A policy in force remains so, and at a start no other policy could replace it. If such a policy cannot be
                    // evaluated, it denies.
                    let changed = faulty.iter().filter(|name| !self.is_in_force(name, &files));
                    let changed: Vec<String> = changed.cloned().collect();
                    if changed.is_empty() || is_start {
                        break rules;
                    }
                    for name in changed {
                        self.take_back(&name, &mut files);
                    }
                }
                Err(found) => {
                    let faulty = faulty_files(&found, &files);
                    problems.extend(found);
                    if faulty.is_empty() {
                        break PolicyRules::clone(&self.rules);
                    }
                    // Of two conflicting files, the one in force remains.
                    let changed = faulty.iter().filter(|name| !self.is_in_force(name, &files));
                    let changed: Vec<String> = changed.cloned().collect();
                    // Files in force that no longer fit the configuration remain as they were read.
                    if changed.is_empty() && self.has_begun {
                        let kept = self.in_force.iter().map(|(name, text)| PolicyFile {
                            name: name.clone(),
                            text: text.clone(),
                        });
                        files = kept.collect();
                        break PolicyRules::clone(&self.rules);
                    }
                    for name in if changed.is_empty() { faulty } else { changed } {
                        self.take_back(&name, &mut files);
                    }
                }
            }
        };
        problems.dedup();
        self.problems = problems;
        self.in_force = files
            .into_iter()
            .map(|file| (file.name, file.text))
            .collect();
        self.has_begun = true;
        self.rules = Arc::new(rules);
        self.contracts = contracts.to_vec();
        self.judge = (!self.rules.is_empty())
            .then(|| Arc::new(PolicyJudge::new(self.rules.clone(), vocabulary)));
        self.is_stale = false;
    }

    /// Restores the text of a file that is in force, or leaves the file out. A file that was restored before is left out.
    fn take_back(&self, name: &str, files: &mut Vec<PolicyFile>) {
        let known = self.in_force.get(name);
        match (known, files.iter().position(|file| file.name == name)) {
            (Some(text), Some(at)) if files[at].text != *text => files[at].text.clone_from(text),
            (Some(text), None) => files.push(PolicyFile {
                name: name.to_owned(),
                text: text.clone(),
            }),
            (_, Some(at)) => drop(files.remove(at)),
            (None, None) => {}
        }
    }

    fn is_in_force(&self, name: &str, files: &[PolicyFile]) -> bool {
        let file = files.iter().find(|file| file.name == name);
        file.is_some_and(|file| self.in_force.get(name) == Some(&file.text))
    }

    /// Returns `true` if a problem is in a file whose kept text is in force.
    fn is_kept(&self, problem: &FileProblem, files: &[PolicyFile]) -> bool {
        let text = |files: &[PolicyFile]| {
            let file = files.iter().find(|file| file.name == problem.file);
            file.map(|file| file.text.clone())
        };
        text(files) != text(&self.files)
    }
}

/// Returns the names of the files with problems.
fn faulty_files(problems: &[FileProblem], files: &[PolicyFile]) -> Vec<String> {
    let is_faulty = |file: &&PolicyFile| problems.iter().any(|problem| problem.file == file.name);
    let faulty = files.iter().filter(is_faulty);
    faulty.map(|file| file.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::write(folder.join(name), text).expect("it can be written");
    }

    fn forbid(id: &str) -> String {
        format!("@id(\"{id}\") forbid(principal == Weir::Agent::\"{id}\", action, resource);")
    }

    fn ids(policies: &PolicySource) -> Vec<String> {
        policies.judge(&[]);
        let rules = policies.rules();
        rules.rules().iter().map(|it| it.id.to_string()).collect()
    }

    #[test]
    fn a_folder_that_cannot_be_read_leaves_its_policies_in_force() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = parent.path().join("policies");
        let policies = PolicySource::default();
        std::fs::create_dir(&folder).expect("a folder");
        write(&folder, "a.cedar", &forbid("a"));
        policies.read(&folder, DefaultDecision::Permit);
        assert_eq!(ids(&policies), ["a"]);
        std::fs::remove_dir_all(&folder).expect("it is there");
        std::fs::write(&folder, "no folder").expect("a file in its place");
        assert!(policies.read(&folder, DefaultDecision::Permit));
        assert_eq!(ids(&policies), ["a"]);
        let problems = policies.problems();
        assert!(
            problems[0].message.contains("cannot be read"),
            "{problems:?}"
        );
        // At a start there is no text to keep: the gateway does not serve.
        let started = PolicySource::default();
        started.read(&folder, DefaultDecision::Permit);
        assert_eq!(ids(&started), [""; 0]);
        assert_eq!(started.missing().len(), 1);
    }

    #[test]
    fn a_folder_that_is_gone_leaves_its_policies_in_force() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let (folder, away) = (parent.path().join("policies"), parent.path().join("away"));
        let policies = PolicySource::default();
        assert!(!policies.read(&folder, DefaultDecision::Permit));
        assert_eq!(policies.problems(), []);
        std::fs::create_dir(&folder).expect("a folder");
        write(&folder, "a.cedar", &forbid("a"));
        policies.read(&folder, DefaultDecision::Permit);
        assert_eq!(ids(&policies), ["a"]);
        std::fs::rename(&folder, &away).expect("it is moved");
        assert!(policies.read(&folder, DefaultDecision::Permit));
        assert_eq!(ids(&policies), ["a"]);
        let problems = policies.problems();
        assert!(problems[0].message.contains("is gone"), "{problems:?}");
        assert!(!policies.read(&folder, DefaultDecision::Permit));
        std::fs::rename(&away, &folder).expect("it is back");
        policies.read(&folder, DefaultDecision::Permit);
        assert_eq!(ids(&policies), ["a"]);
        assert_eq!(policies.problems(), []);
        std::fs::remove_file(folder.join("a.cedar")).expect("it is there");
        policies.read(&folder, DefaultDecision::Permit);
        assert_eq!(ids(&policies), [""; 0]);
    }

    /// A `permit` is refused where everything is permitted anyway. The `forbid` next to it is still needed.
    #[test]
    fn a_forbid_stays_in_force_where_its_file_does_not_fit_the_configuration() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let policies = PolicySource::default();
        let permit = "@id(\"all\") permit(principal, action, resource);";
        write(
            folder.path(),
            "a.cedar",
            &format!("{}\n{permit}", forbid("a")),
        );
        write(folder.path(), "b.cedar", &forbid("b"));
        policies.read(folder.path(), DefaultDecision::Deny);
        assert_eq!(ids(&policies), ["a", "all", "b"]);
        policies.read(folder.path(), DefaultDecision::Permit);
        assert_eq!(ids(&policies), ["a", "all", "b"]);
        let problems = policies.problems();
        assert!(problems.iter().any(|it| it.place == "all"), "{problems:?}");
        // A valid file comes into force.
        write(folder.path(), "a.cedar", &forbid("c"));
        policies.read(folder.path(), DefaultDecision::Permit);
        assert_eq!(ids(&policies), ["c", "b"]);
        assert_eq!(policies.problems(), []);
    }

    #[test]
    fn a_file_that_is_not_sound_leaves_the_one_before_in_force() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let policies = PolicySource::default();
        let in_force = || {
            policies.read(folder.path(), DefaultDecision::Permit);
            policies.judge(&[]);
            let rules = policies.rules();
            let ids: Vec<String> = rules
                .rules()
                .iter()
                .map(|rule| rule.id.to_string())
                .collect();
            (ids, policies.problems().len())
        };
        assert_eq!(in_force(), (vec![], 0));
        write(folder.path(), "a.cedar", &forbid("a"));
        write(folder.path(), "b.cedar", &forbid("b"));
        assert_eq!(in_force(), (vec!["a".into(), "b".into()], 0));
        write(folder.path(), "a.cedar", "forbid(principal");
        write(folder.path(), "b.cedar", &forbid("c"));
        assert_eq!(in_force(), (vec!["a".into(), "c".into()], 1));
        write(
            folder.path(),
            "a.cedar",
            "forbid(principal, action, resource == Weir::Tool::\"x\");",
        );
        let (ids, problems) = in_force();
        assert_eq!(ids, ["a", "c"]);
        assert!(problems > 0);
        for name in ["d.cedar", "0.cedar"] {
            write(folder.path(), name, &forbid("c"));
            assert_eq!(in_force().0, ["a", "c"], "one id twice");
            let of_b = policies.rules();
            assert!(of_b.rules()[1].file.ends_with("b.cedar"));
            std::fs::remove_file(folder.path().join(name)).expect("it is there");
        }
        std::fs::remove_file(folder.path().join("a.cedar")).expect("it is there");
        assert_eq!(in_force(), (vec!["c".into()], 0));
        write(folder.path(), "c.cedar", "???");
        assert_eq!(in_force().0, ["c"]);
        assert_eq!(
            policies.missing().len(),
            1,
            "nothing stands in for a new file"
        );
    }
}
