"""What the name of a column says about it: its words, and which of them mean what.

Words are English with the common German, French and Spanish ones, in small letters without accents.
A name alone never decides: drafting/ asks whether the values can be what the name says.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


IDENTIFIER = _set(
    "id ids uid uuid guid pid hid key index idx serial seq seqn seqno sequence ident identifier "
    "identification rowname rownames rownum ssn passport iban phone telephone tel telefon "
    "telefono mobile fax email mail kennung schluessel schlussel cle clave matricule dni nif "
    "siren siret licence license"
)
# Numbers something at the end of a name (house_nr), counts it at the beginning (nr_children).
NUMBER = _set("no nr num nbr nro nb number numbers nummer numero")
COUNT = _set("n nb num nbr nr no number count counts total anzahl nombre cantidad freq frequency")
# What is counted; with few distinct values these are no codes.
COUNTED = _set(
    "child children childs kids kid kinder enfants hijos persons personen members siblings "
    "dependents dependants dep visits rooms bedrooms bdrms bathrooms bathrms baths cars vehicles "
    "employees staff workers passengers cards accounts claims size hsize hhsize famsize attempts "
    "doctors trips stays births deaths cylinders doors units goals points wins losses games "
    "stories floors people pets times bed beds bath babies adults guests"
)
# A quantity even where it takes few values.
MEASURE = _set(
    "age alter edad income einkommen revenu ingreso wage wages salary lohn gehalt salaire price "
    "preis prix precio cost costs amount sales revenue turnover umsatz profit tax height length "
    "width depth distance area time nights hours days week woche semaine semana weeks "
    "months years yrs minutes seconds percent pct share score "
    "temperature temp speed duration dose experience exper tenure population pop "
    "expenditure value mass volume hp mpg bmi"
)
# Whom or what numbers under such a name identify, in the words of a sentence. Households come first: k of
# them are k of their members too.
HOUSEHOLDS = {
    **dict.fromkeys(_set("household haushalt menage hogar hh hshld hid hhold hhid"), "household"),
    **dict.fromkeys(_set("family familie famille familia fam famid"), "family"),
    **dict.fromkeys(_set("mother mom mum mutter madre mere momid motherid"), "mother"),
    **dict.fromkeys(_set("couple dyad twin twins pair"), "pair"),
    "litter": "litter",
}
UNITS = {
    **dict.fromkeys(_set("person personne persona pers individual indiv ind pid"), "person"),
    **dict.fromkeys(_set("patient pat patno patid"), "patient"),
    **dict.fromkeys(_set("subject subj usubj sub subno"), "subject"),
    **dict.fromkeys(_set("respondent resp respid caseid"), "respondent"),
    **dict.fromkeys(_set("participant ppt member user player voter contestant athlete candidate"), "person"),
    **dict.fromkeys(_set("student stud pupil schueler eleve alumno"), "student"),
    **dict.fromkeys(_set("child kid kind bebe baby"), "child"),
    **dict.fromkeys(_set("employee emp worker"), "worker"),
    **dict.fromkeys(_set("customer cust client kunde account acct"), "customer"),
    **dict.fromkeys(_set("firm firma company comp entreprise empresa enterprise gvkey permno cusip"), "firm"),
    **dict.fromkeys(_set("establishment betrieb plant"), "establishment"),
    "utility": "utility",
    **dict.fromkeys(_set("animal dog rat mouse pig cow chick bird fish"), "animal"),
}  # fmt: skip
# Where people are: k counts the people there.
CONTAINERS = {
    **dict.fromkeys(_set("school sch schule ecole escuela"), "school"),
    **dict.fromkeys(_set("class classroom klasse"), "class"),
    **dict.fromkeys(_set("teacher prof instructor lecturer"), "teacher"),
    **dict.fromkeys(_set("hospital clinic ward hosp provider prov"), "hospital"),
    **dict.fromkeys(_set("community comm"), "community"),
    **dict.fromkeys(_set("interviewer"), "interviewer"),
}
# Sorts of things that are numbered; of a few with many records each, the numbers are codes.
THINGS = _set(
    "order plot site station store shop branch bank team game match season race flight route block "
    "cluster psu ssu machine device event visit item product batch lot group grp dept department species"
)
RECORDS = _set(
    "case record row obs observation sample specimen tree unit panel session transaction dorm"
)
ENTITY = frozenset({*HOUSEHOLDS, *UNITS, *CONTAINERS, *THINGS, *RECORDS})
PLACE = _set(
    "state staat region country land pays pais city town stadt ville ciudad county kreis district "
    "commune gemeinde municipality tract precinct village province provincia canton kanton zone "
    "neighborhood neighbourhood borough parish"
)
CODE = _set(
    "code codes cod kode codigo zip zipcode postcode postal plz postleitzahl fips isco nace sic "
    "naics isic icd atc nuts ean gtin sku iso occ occup occupation beruf profession industry indus "
    "branche cpt drg naf kind"
)
# Sorts of things, coded by few numbers.
SORT = _set(
    "type typ tipo class klasse classe cat category kategorie categorie categoria status stage "
    "grade group grp gruppe groupe grupo level lvl sector sektor secteur sex gender geschlecht "
    "sexe sexo race ethnic ethnicity religion marital maritl flag indicator treatment trt treat "
    "arm cohort wave quality rank rating likert stratum strata schicht cluster diet nationality "
    "citizenship occ occupation industry dept department material walls roof floor wall"
)
WEIGHT = _set("weight weights wt wts wgt wgts gewicht poids peso weighting factor faktor facteur")
WEIGHT_ONLY = _set(
    "weights wts wgts fnlwgt afnlwgt finalwt finalweight perwt hhwt sampwt pweight pweights "
    "fweight aweight iweight wtfinl asecwt ponderation ponderacion hochrechnungsfaktor hrf fexp "
    "expansion pwgt hwgt wtssall"
)
# Together with a word for weight or probability: the weight of a sample.
SAMPLING = _set(
    "final fnl sample sampling survey design person household hh post strat analysis case prob "
    "inclusion incl expansion raising calibrated frequency freq selection adjusted inverse "
    "hochrechnung"
)
YEAR = _set("year yr jahr annee ano anio yob")
PARTS_OF_DATES = {
    **dict.fromkeys(_set("month mon mth monat mois mes"), (0, 12)),
    **dict.fromkeys(_set("day dom tag jour dia"), (0, 31)),
    **dict.fromkeys(_set("weekday dow wday wochentag"), (0, 7)),
    **dict.fromkeys(_set("quarter qtr quartal trimestre"), (0, 4)),
    **dict.fromkeys(_set("hour stunde heure hora"), (0, 24)),
    **dict.fromkeys(_set("minute"), (0, 60)),
}
COORDINATE = {
    **dict.fromkeys(_set("lat latitude breitengrad"), 90),
    **dict.fromkeys(_set("lon lng long longitude laengengrad langengrad"), 180),
}
NAME = _set(
    "name names surname lastname firstname nachname vorname nom prenom apellido nombre address "
    "adresse direccion street strasse rue email mail"
)

# What a name is of where it is one of people; the name of a clinic or a product is a category.
PERSONAL = _set(
    "util first last full middle given maiden user fake sur fore nick contact owner vor nach"
)

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# An entity written together with what numbers or names it: UTILITYID, custno, utilname.
_JOINED = re.compile(r"(.+?)(id|no|nr|num|key|nummer|name|cod|code)(k|kn|kg)?")
# A code or sort of anything, written together with it: occcode, indcode, jobkind, hhtype.
_SORT_OF = re.compile(r"(.+)(code)|(.{2,})(kind|type)")
# What is counted, written together with something: nkids, youngkids, bedrooms.
_COUNTED_WITHIN = re.compile(r"(.*)(kids|children|visits|rooms)(.*)")
_FEW_LETTERS = _set(
    "f p h hh u rec emp cust comp pat sub org trans fam prov dist util last first sch stud tch cl hosp"
)


def words(name: Any) -> tuple[str, ...]:
    """Split the name of a column into words.

    Snake case, camel case, dots and blanks part them; a known entity is parted from its id.

    >>> words("householdID"), words("UTILITYID"), words("grid.width"), words("Année_2")
    (('household', 'id'), ('utility', 'id'), ('grid', 'width'), ('annee', '2'))
    """
    plain = unicodedata.normalize("NFKD", str(name).replace("ß", "ss"))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    found: list[str] = []
    for word in _WORD.findall(plain):
        word = word.lower()
        joined = _JOINED.fullmatch(word)
        if joined and word not in IDENTIFIER and joined[1] in ENTITY | PLACE | _FEW_LETTERS:
            found += filter(None, joined.groups())
            continue
        sort_of = _SORT_OF.fullmatch(word)
        if sort_of and word not in CODE | SORT:
            found += filter(None, sort_of.groups())
            continue
        counted = _COUNTED_WITHIN.fullmatch(word)
        if counted:
            found += filter(None, counted.groups())
        else:
            found.append(word)
    return tuple(found)
