"""Measures what the drafted tools of a shop and of a CRM, and their usual answers, cost a model: docs/benchmarks/answers-of-a-size.md.

    python3 bench/sizes.py WEIR [OLDER_WEIR]

Tokens are counted by the first program. A second program is measured too, and stands first in the table.
"""

import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

FIRST = ["Ann", "Ben", "Cem", "Dee", "Eva", "Fil", "Gus", "Hal", "Ida", "Jon"]
LAST = ["Berg", "Costa", "Dahl", "Evans", "Fischer", "Grant", "Hansen", "Ito"]
CITIES = ["Oslo", "Bergen", "Paris", "Lyon", "Berlin", "Izmir", "Osaka"]


def shop(folder):
    """Writes 3,000 orders of 11 columns."""
    chance = random.Random(7)
    with open(folder / "orders.csv", "w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(["order_id", "ordered_on", "customer_name", "email", "city", "status", "payment", "items",
                        "net_total", "shipping", "coupon"])
        for at in range(3000):
            name = f"{chance.choice(FIRST)} {chance.choice(LAST)}"
            sheet.writerow([f"A-{100000 + at}", f"2026-{1 + at % 12:02}-{1 + at % 28:02}", name,
                            name.lower().replace(" ", ".") + f"{at % 97}@mail.example", chance.choice(CITIES),
                            chance.choice(["paid", "open", "refunded", "cancelled"]),
                            chance.choice(["card", "invoice", "transfer"]), chance.randint(1, 9),
                            f"{chance.random() * 400:.2f}", chance.choice(["0.00", "4.90", "9.90"]),
                            chance.choice(["", "", "", "SPRING"])])


def crm(folder):
    """Writes 1,000 contacts of 50 columns, as a CRM dumps them."""
    chance = random.Random(11)
    names = ["contact_id", "first_name", "last_name", "company", "title", "email", "phone", "mobile", "fax", "website_url",
             "street", "street_2", "postcode", "city", "region", "country", "latitude", "longitude", "owner", "team",
             "stage", "lead_source", "rating", "is_customer", "opted_out", "created_on", "last_contacted_on",
             "next_step_on", "closed_on", "expected_amount", "probability", "employees", "annual_revenue", "industry",
             "language", "currency", "tags", "notes", "linkedin_url", "photo_url", "external_guid", "sync_hash",
             "custom_1", "custom_2", "custom_3", "custom_4", "custom_5", "import_batch", "legacy_no", "updated_at"]
    with open(folder / "contacts.csv", "w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(names)
        for at in range(1000):
            first, last = chance.choice(FIRST), chance.choice(LAST)
            day = f"2026-{1 + at % 12:02}-{1 + at % 28:02}"
            row = [10000 + at, first, last, f"{last} {chance.choice(['AS', 'GmbH', 'Ltd'])} {at % 211}",
                   chance.choice(["Buyer", "Head of Purchase", "Owner"]), f"{first}.{last}{at}@firm.example".lower(),
                   f"+47 22 {at:06}", f"+47 99 {at:06}", "", f"https://firm{at}.example/", f"Gate {at % 90}", "",
                   f"{1000 + at % 8000}", chance.choice(CITIES), "", chance.choice(["NO", "FR", "DE", "TR", "JP"]),
                   f"{chance.random() * 60:.6f}", f"{chance.random() * 60:.6f}", chance.choice(["mia", "tom", "lea"]),
                   chance.choice(["north", "south"]), chance.choice(["new", "qualified", "won", "lost"]),
                   chance.choice(["fair", "web", "referral"]), chance.choice(["hot", "warm", "cold"]),
                   chance.choice(["true", "false"]), chance.choice(["true", "false"]), day, day, day,
                   day if at % 3 == 0 else "", chance.randint(1, 90) * 1000, chance.randint(0, 100),
                   chance.randint(1, 4000), chance.randint(1, 900) * 10000,
                   chance.choice(["food", "steel", "software"]), chance.choice(["en", "de", "no"]),
                   chance.choice(["EUR", "NOK"]), "a;b", "Called twice about the offer of last spring; wants a list of "
                   f"prices for {chance.randint(2, 40)} sites and a meeting with the team before the end of the quarter.",
                   f"https://in.example/{at}", f"https://img.example/{at}.png", f"{chance.getrandbits(128):032x}",
                   f"{chance.getrandbits(160):040x}", "", "", "", "", "", "2026-02", f"L{at:05}", f"{day}T08:00:00Z"]
            sheet.writerow(row)


class Program:
    """One build of Weir, and what it makes of a file."""

    def __init__(self, path, counter):
        self.path = path
        self.counter = counter

    def run(self, words, text=None):
        done = subprocess.run([self.path, *words], input=text, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{words}: {done.stderr}")
        return done.stdout

    def count(self, text):
        return int(subprocess.run([self.counter, "tools", "cost", "--text", "-"], input=text, capture_output=True,
                                  text=True, check=True).stdout)

    def measure(self, folder, file, questions):
        """Returns the tokens of the tools, and of the answer to each question."""
        place = tempfile.TemporaryDirectory()
        house = pathlib.Path(place.name)
        (house / "contracts").mkdir()
        (house / "weir.toml").write_text(
            f'[folders]\nstate = "state"\n[connections.data]\nkind = "files"\npath = "{folder}"\n'
            '[plugins.sheet.grants]\ndata = "read"\n')
        config = ["--config", str(house / "weir.toml")]
        (house / "contracts" / "drafted.yaml").write_text(self.run(["draft", str(folder / file), *config]))
        rows = json.loads(self.run(["tools", "cost", "--json", *config]))["rows"]
        tools = next(row for row in rows if row["name"] == "(everything)")
        answers = []
        for tool, arguments in questions:
            said = self.run(["call", *config, tool, "--arguments", json.dumps(arguments)])
            answers.append(self.count(said))
        return tools["tokens"], answers


def main():
    programs = [Program(path, sys.argv[1]) for path in reversed(sys.argv[1:3])]
    questions = {
        "orders.csv": [
            ("list_orders", {}),
            ("list_orders", {"status": "paid"}),
            ("summarize_orders", {"group_by": ["status"], "measures": ["count", "sum(net_total)"]}),
        ],
        "contacts.csv": [
            ("list_contacts", {}),
            ("list_contacts", {"stage": "won"}),
            ("summarize_contacts", {"group_by": ["stage"], "measures": ["count"]}),
        ],
    }
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        shop(folder)
        crm(folder)
        for file, asked in questions.items():
            print(f"\n{file}")
            names = ["all tools"] + [f"{tool} {json.dumps(arguments)}" for tool, arguments in asked]
            measured = [program.measure(folder, file, asked) for program in programs]
            for at, name in enumerate(names):
                tokens = [[tools, *answers][at] for tools, answers in measured]
                print(f"| {name} | " + " | ".join(str(count) for count in tokens) + " |")


main()
