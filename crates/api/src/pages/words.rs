//! The words of the frame around every page, in each language the switch offers.

/// What the header and the footer say.
#[derive(Debug)]
pub struct Words {
    /// The language of these words, as in `lang="…"`.
    pub code: &'static str,
    pub skip: &'static str,
    pub main_menu: &'static str,
    pub shop: &'static str,
    pub lab: &'static str,
    pub lessons: &'static str,
    pub inspect: &'static str,
    pub mailbox: &'static str,
    pub statement: &'static str,
    pub orders: &'static str,
    pub sign_in: &'static str,
    pub cart: &'static str,
    pub menu: &'static str,
    pub dark: &'static str,
    pub light: &'static str,
    /// The switch names the other language in that language.
    pub other_language: &'static str,
    pub other_language_code: &'static str,
    pub no_real_money: &'static str,
    pub api_reference: &'static str,
}

pub(super) static ENGLISH: Words = Words {
    code: "en",
    skip: "Skip to the page",
    main_menu: "Main",
    shop: "Shop",
    lab: "Lab",
    lessons: "Lessons",
    inspect: "Inspect",
    mailbox: "Mailbox",
    statement: "Statement",
    orders: "Orders",
    sign_in: "Sign in",
    cart: "Cart",
    menu: "Menu",
    dark: "Dark",
    light: "Light",
    other_language: "中文",
    other_language_code: "zh-Hans",
    no_real_money: "No real money moves here. Cards, bank and provider are simulated on this server.",
    api_reference: "API reference",
};

pub(super) static CHINESE: Words = Words {
    code: "zh-Hans",
    skip: "跳到正文",
    main_menu: "主菜单",
    shop: "商店",
    lab: "实验室",
    lessons: "课程",
    inspect: "查询",
    mailbox: "邮箱",
    statement: "对账单",
    orders: "订单",
    sign_in: "登录",
    cart: "购物车",
    menu: "菜单",
    dark: "深色",
    light: "浅色",
    other_language: "English",
    other_language_code: "en",
    no_real_money: "这里不会动用真钱。银行卡、银行和支付方都由本服务器模拟。",
    api_reference: "API 文档",
};

impl Words {
    /// The words for a language code; English where we have none.
    pub fn of(code: &str) -> &'static Self {
        if code == CHINESE.code { &CHINESE } else { &ENGLISH }
    }

    /// Marks the frame when it speaks another language than the page inside it.
    pub(super) fn lang_attribute(&self) -> &'static str {
        if self.code == CHINESE.code { " lang=\"zh-Hans\"" } else { "" }
    }
}
