"""Names of people, machines and things, derived from the number of a pool member."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


FIRST = _words(
    "anna ben carla david elena felix grace hugo irina jonas karin liam maria noah olga peter quinn rosa samuel tanja "
    "umar vera walter xenia yusuf zoe amir bianca cedric dunja emil fatma georg hanna ivan julia kofi lena mateo nadia "
    "oscar priya rafael sofia theo ursula viktor wendy yara zeno"
)
LAST = _words(
    "adler bauer castro dietz egger fischer gruber huber ito jansen keller lang moser novak okafor pichler quast "
    "reiter singh tanaka ulrich vogel wagner yilmaz zhang aigner brandt costa duarte ebner ferrari gomez hofer ivanov "
    "jung koch leitner meier nguyen ortner petrov rossi steiner thaler urban varga winkler yamada zeller"
)
DOMAINS = _words("example.com example.org mail.example.net shop.example.com corp.example.com post.example.org")
ACCOUNTS = _words("root admin deploy backup www-data postgres jenkins oracle guest ubuntu nagios test git ansible")
THINGS = _words(
    "lamp chair kettle router cable monitor backpack jacket boots helmet guitar tent stove mixer drill sensor battery "
    "keyboard printer scanner pillow blanket bottle ladder mirror clock speaker camera tripod charger"
)
SECTIONS = _words("home search cart checkout account help news media orders catalog reports invoices teams settings")


def user_name(member: int) -> str:
    """A user name: service accounts first, as those log most, then people."""
    if member < len(ACCOUNTS):
        return ACCOUNTS[member]
    member -= len(ACCOUNTS)
    first, rest = FIRST[member % len(FIRST)], member // len(FIRST)
    last, again = LAST[(rest + member) % len(LAST)], rest // len(LAST)
    return f"{first}.{last}" if again == 0 else f"{first[0]}{last}{again * 7 + member % 7}"


def mail_address(member: int) -> str:
    """A person's email address."""
    return f"{user_name(member + len(ACCOUNTS))}@{DOMAINS[member * 5 % len(DOMAINS)]}"


def host_name(member: int) -> str:
    """A machine's name in the style of a cloud provider."""
    return f"ip-10-{member % 3 * 16 + 4}-{member * 37 % 256}-{member * 91 % 254 + 1}"


def page_path(member: int) -> str:
    """A path on a web site: few sections with many things."""
    section = SECTIONS[member % len(SECTIONS)]
    if member < len(SECTIONS):
        return f"/{section}"
    thing = THINGS[member // len(SECTIONS) % len(THINGS)]
    return f"/{section}/{thing}" if member < 420 else f"/{section}/{thing}/{member * 13 % 99991}"


def file_path(member: int) -> str:
    """A file on a server."""
    thing, section = THINGS[member % len(THINGS)], SECTIONS[member // 7 % len(SECTIONS)]
    folder = ("/var/lib", "/srv/data", "/opt/app", "/mnt/vol1", "/home/shared")[member % 5]
    number = member // len(THINGS)
    return f"{folder}/{section}/{thing}.dat" if number == 0 else f"{folder}/{section}/{thing}-{number:04d}.dat"


_PHRASES = (
    (("Größe", "Lieferung", "Prüfung", "Rückgabe"), ("später", "unmöglich", "geändert", "bestätigt"), ("für", "über")),
    (("доставка", "оплата", "ошибка", "корзина"), ("завершена", "отклонена", "найдена"), ("сегодня", "снова", "позже")),
    (
        ("注文", "配送", "支払い", "返品"),
        ("が完了しました", "に失敗しました", "を確認中です"),
        ("東京", "大阪", "名古屋"),
    ),
    (("订单", "付款", "用户", "库存"), ("已完成", "失败", "不足", "已更新"), ("北京", "上海", "广州")),
    (("commande", "livraison", "façade", "réseau"), ("annulée", "reçue", "différée"), ("à Orléans", "à Sète")),
    (("παραγγελία", "πληρωμή", "σφάλμα"), ("ολοκληρώθηκε", "απέτυχε"), ("Αθήνα", "Πάτρα")),
    (("teslimat", "ödeme", "şikâyet"), ("gecikti", "onaylandı", "güncellendi"), ("İzmir", "Muğla")),
    (("📦 parcel", "💳 card", "⭐ review"), ("late 😡", "ok 👍", "great 🎉"), ("café", "naïve", "Zürich")),
)


def phrase(member: int) -> str:
    """A few words as typed by users, mostly not in English."""
    subjects, verbs, places = _PHRASES[member % len(_PHRASES)]
    rest = member // len(_PHRASES)
    subject, rest = subjects[rest % len(subjects)], rest // len(subjects)
    verb, rest = verbs[rest % len(verbs)], rest // len(verbs)
    return f"{subject} {verb} {places[rest % len(places)]}"
