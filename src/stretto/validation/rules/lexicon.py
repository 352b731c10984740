"""The words that rules are made of. What stands in none of these lists is a name, or unknown."""

from stretto.validation.rules.checks import Kind, Unit


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODALS = ("must", "should", "shall", "has to", "have to", "needs to", "need to", "is required to",
          "are required to", "is to", "are to", "ought to")  # fmt: skip
NEGATIVES = ("must not", "mustn't", "should not", "shouldn't", "shall not", "may not", "can not",
             "cannot", "can't", "must never", "should never", "do not", "don't")  # fmt: skip
HAVING = (
    "include", "includes", "contain", "contains", "have", "has", "provide", "return", "identify",
    "list", "give", "produce", "present", "offer", "propose", "suggest", "output", "specify",
    "define", "carry", "hold", "use", "comprise", "consist of", "be made up of", "come with",
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "boolean": "boolean", "bool": "boolean", "booleans": "boolean",
    "array": "array", "arrays": "array", "list": "array", "lists": "array",
    "number": "number", "numbers": "number", "numeric": "number", "float": "number",
    "integer": "integer", "integers": "integer", "int": "integer",
    "string": "string", "strings": "string", "text": "string",
    "object": "object", "objects": "object", "dictionary": "object", "dict": "object",
    "map": "object", "mapping": "object",
}  # fmt: skip
# "phone number", "price list", "site map": after a bare noun these make a compound, not a kind.
COMPOUNDING = {"list", "number", "text", "string", "object", "map", "mapping", "float"}
# "a text summary" is prose, "a list price" a price.
NOT_BEFORE_A_NAME = {"list", "text", "number", "map", "mapping", "float"}

FIELD_WORDS = {
    "field",
    "fields",
    "key",
    "keys",
    "property",
    "properties",
    "attribute",
    "attributes",
}

CALLED = ("called", "named", "titled", "labelled", "labeled", ":", "called :", "named :")

UNITS: dict[str, Unit] = {
    "word": "words", "words": "words",
    "character": "characters", "characters": "characters", "chars": "characters",
    "sentence": "sentences", "sentences": "sentences",
    "line": "lines", "lines": "lines",
    "paragraph": "paragraphs", "paragraphs": "paragraphs",
    "bullet": "bullets", "bullets": "bullets",
    "bullet point": "bullets", "bullet points": "bullets",
    "heading": "headings", "headings": "headings",
    "section": "sections", "sections": "sections",
}  # fmt: skip
ITEMS = {"item", "items", "element", "elements", "entry", "entries", "object", "objects"}

# What an author calls the whole output.
WHOLE = {"output", "answer", "response", "reply", "result", "json", "it", "text", "document",
         "report", "proposal", "article", "email", "post", "brief", "memo", "letter", "essay",
         "message", "draft", "story", "you", "agent", "model", "assistant", "analysis",
         "review", "plan"}  # fmt: skip

_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
          "fifteen sixteen seventeen eighteen nineteen")  # fmt: skip
SMALL_NUMBERS = {word: number for number, word in enumerate(_SMALL.split())}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS = {word: 10 * number for number, word in enumerate(_TENS.split(), start=2)}
POWERS = {"hundred": 100, "thousand": 1000}

# Nouns that stand before a noun without adding a claim: a pain point is one thing, while a
# credible source is a source and an opinion. Only these let code count what it finds.
NOUN_MODIFIERS = _words(
    """
    account action activity agenda analysis answer api app application approach area
    argument article asset author background bug bullet business buyer candidate case category
    change channel check client code color comment community company compliance competitor
    component confidence contact content cost country critique customer data database date
    deal decision dependency design detail discussion document domain driver email employee
    entity error event evidence example expense experiment export failure feature feedback file
    finance finding focus follow-up function goal group growth hashtag headline hiring idea image
    impact improvement industry information input insight integration interview investment issue
    item job key keyword language lead learning lesson level library line link list location log
    main market marketing meeting menu message method metric milestone mitigation model module
    name network news objective office opportunity option order organization output owner
    package page pain paper part partner payment performance person phase phone pitch plan platform
    point policy price pricing priority problem process product project prompt proposal question
    quiz quote rating reader reason recommendation record reference region release report request
    requirement research resource response result revenue review risk role root row rule sales
    scenario schedule score scope search section security segment selling sentence server service
    signal skill slide software solution source sprint staff stage stakeholder step story strategy
    study success summary supplier support survey system tag talking target task team tech
    technology test threat ticket tier time timeline title tool top topic training trend update
    usage use user value variable vendor version video warning web work workflow
    """
)

# Words that never name a field: "must include all required fields", "a valid array".
NOT_NAMES = _words(
    """
    a an the this that these those its their his her our your my such same other another both
    and or nor but not no none without with within for from to of in on at by as if when whenever
    unless while where which who whose than then also only just even so too very more most fewer
    less least fewest many much several some any all each every either neither few enough
    must should shall will would may might can could cannot never always be is are was were been
    being has have had do does did include includes contain contains
    additional extra optional required mandatory necessary needed relevant appropriate correct
    valid invalid proper unknown unique different distinct similar missing following above below
    empty non-empty nonempty blank null single nested sorted ordered flat large small short long
    simple full complete brief clear detailed specific concrete good better best high low new
    numbered bulleted populated filled mixed sensitive personal private hidden meaningful
    descriptive useful important exactly precisely about approximately roughly around nearly
    first second third last between up over under per plus minus using based including excluding
    field fields keys property properties attribute attributes
    section sections heading headings called named titled labelled labeled
    """
)
# Words of these shapes may be adjectives: a field of that name counts, its absence does not.
ADJECTIVE_ENDINGS = ("ful", "ous", "ive", "able", "ible", "less", "ish", "ical", "istic", "ly")
